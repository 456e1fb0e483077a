import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'

import type { Connections } from './connections.ts'

/** A body closes its connection after more chunks than this, if their mean length is below this. */
const TINY = { count: 1000, bytes: 16 }

/** Number of chunks after which the time of the turn is looked at. */
const COUNTED = 256

/** Bytes that are joined, and length from which a chunk passes unchanged. */
const JOINED_BYTES = 4096

/**
 * Returns a stream of the same bytes in longer chunks. A chunk of one byte takes 400 bytes of heap, and Node reads
 * 11,000 of them at once from a connection. So each chunk is copied when Node has parsed it, whether or not somebody
 * reads the stream: while 400 bodies waited to be read, they took 2 GB.
 *
 * Nobody needs a body that exceeds `limit`, so while more bytes than that wait, further bytes are dropped. After the
 * stream is destroyed, all of them are.
 */
export function joinChunks (source: Readable, limit: number): Readable {
  let rest = Buffer.allocUnsafeSlow(JOINED_BYTES)
  let length = 0
  const joined = new Readable({
    read () {},
    destroy (error, done) {
      source.off('data', add).off('end', end).off('error', fail).resume()
      done(error)
    },
  })
  // The client may go before somebody reads the body.
  joined.on('error', () => {})
  source.on('data', add).on('end', end).on('error', fail)
  // Otherwise, Node keeps the chunks of the first packet in a list.
  source.read(0)
  return joined

  function add (chunk: Buffer) {
    if (joined.readableLength > limit) return
    if (length + chunk.length > JOINED_BYTES) flush()
    if (chunk.length < JOINED_BYTES) length += chunk.copy(rest, length)
    else joined.push(chunk)
  }

  function flush () {
    if (length === 0) return
    const chunk = rest.subarray(0, length)
    rest = Buffer.allocUnsafeSlow(JOINED_BYTES)
    length = 0
    joined.push(chunk)
  }

  function end () {
    flush()
    joined.push(null)
  }

  function fail (error: Error) {
    joined.destroy(error)
  }
}

/**
 * Reads a body, and closes its connection if it has very many tiny chunks. Node reads 2 MB of a connection before it
 * turns to other work, and parsing 64 KB of such chunks takes 20 ms: eight clients stopped the event loop for ten
 * seconds. Larger chunks count toward the turn of the event loop: twenty clients that sent chunks of 17 bytes delayed
 * others by a second.
 */
export function closeTinyChunks (body: IncomingMessage, connections: Connections) {
  const { socket } = body
  let count = 0
  let bytes = 0
  body.on('data', chunk => {
    bytes += chunk.length
    if (++count > TINY.count && bytes < TINY.bytes * count) connections.closeFlood(socket)
    else if (count % COUNTED === 0 && connections.has(socket)) connections.count(socket)
  })
}
