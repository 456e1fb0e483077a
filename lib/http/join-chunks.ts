import { Readable } from 'node:stream'

/** Bytes that are joined, and length from which a chunk passes unchanged. */
const JOINED_BYTES = 4096

/**
 * Returns a stream of the same bytes in longer chunks. Fastify keeps each chunk of a body until its end, and a chunk of
 * one byte takes 300 bytes of heap: 400 sign-ins of 16 KB in chunks of one byte ended a process. `source.read()` joins
 * the chunks that have arrived together, which a stream of `data` events would do in thirty times the time.
 */
export function joinChunks (source: Readable): Readable {
  let rest = Buffer.allocUnsafeSlow(JOINED_BYTES)
  let length = 0
  const joined = new Readable({
    read: pull,
    destroy (error, done) {
      source.off('readable', pull).off('end', end).off('error', fail)
      done(error)
    },
  })
  source.on('readable', pull).on('end', end).on('error', fail)
  return joined

  function pull () {
    for (let chunk: Buffer | null; (chunk = source.read()) !== null;) {
      if (length + chunk.length > JOINED_BYTES) flush()
      if (chunk.length < JOINED_BYTES) length += chunk.copy(rest, length)
      else if (!joined.push(chunk)) return
    }
  }

  function flush () {
    if (length === 0) return
    joined.push(rest.subarray(0, length))
    rest = Buffer.allocUnsafeSlow(JOINED_BYTES)
    length = 0
  }

  function end () {
    flush()
    joined.push(null)
  }

  function fail (error: Error) {
    joined.destroy(error)
  }
}
