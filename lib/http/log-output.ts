import { write } from 'node:fs'
import { Socket } from 'node:net'

/** Bytes of whole lines in one write, unless a line alone is longer. */
const BATCH_BYTES = 65_536

/** Bytes of lines that wait at most; further ones are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/** Milliseconds until a write that failed is tried again. */
const RETRY_DELAY = 1000

/** Seconds that a flush waits at most, for example at the stop for a reader that takes nothing. */
export const LOG_FLUSH_SECONDS = 1

/** Writes some bytes, like `fs.write`. */
type Write = (bytes: Buffer, done: (error: Error | null | undefined, written?: number) => void) => void

interface Batch {
  text: string
  bytes: number
}

/**
 * Where the log goes. The service never waits for it: while a disk is full or a reader stands still, lines wait here,
 * and beyond 16 MB they are dropped and counted. pino's own destination would try to write for ever, even at the exit.
 */
export class LogOutput {
  /** Lines dropped since the start. */
  dropped = 0
  readonly #write: Write
  readonly #complain: (message: string) => void
  readonly #batches: Batch[] = []
  #waitingBytes = 0
  #isWriting = false
  /** The lines dropped before the current trouble; `undefined` while all is well. */
  #droppedBefore: number | undefined

  /** `complain` gets a sentence when lines cannot be written, and when they are again. */
  constructor (write: Write, complain: (message: string) => void) {
    this.#write = write
    this.#complain = complain
  }

  write (line: string) {
    const bytes = Buffer.byteLength(line)
    if (this.#waitingBytes + bytes > MAX_WAITING_BYTES) {
      this.#trouble('it is not read fast enough')
      this.dropped++
      return
    }
    this.#waitingBytes += bytes
    const last = this.#batches.at(-1)
    if (last && last.bytes + bytes <= BATCH_BYTES) {
      last.text += line
      last.bytes += bytes
    } else {
      this.#batches.push({ text: line, bytes })
    }
    if (!this.#isWriting) this.#next()
  }

  /** Calls back when everything is written, or when that takes too long. */
  flush (done: () => void) {
    const end = performance.now() + LOG_FLUSH_SECONDS * 1000
    const poll = () => {
      if (this.#waitingBytes === 0 || performance.now() > end) done()
      else setTimeout(poll, 10)
    }
    poll()
  }

  /** Writes the first batch. The lines that come meanwhile share the next ones. */
  #next () {
    const batch = this.#batches.shift()
    this.#isWriting = batch !== undefined
    if (batch) this.#writeBatch(batch, Buffer.from(batch.text))
  }

  #writeBatch (batch: Batch, rest: Buffer) {
    this.#write(rest, (error, written = rest.length) => {
      if (error) {
        this.#trouble(error.message)
        // The rest of a line must follow its beginning, so this batch is not dropped.
        setTimeout(() => this.#writeBatch(batch, rest), RETRY_DELAY).unref()
      } else if (written < rest.length) {
        this.#writeBatch(batch, rest.subarray(written))
      } else {
        this.#waitingBytes -= batch.bytes
        if (this.#batches.length === 0) this.#recovered()
        // The rest of the lines of this turn of the event loop share a batch, too.
        if (this.#batches.length > 1) this.#next()
        else setImmediate(() => this.#next())
      }
    })
  }

  #trouble (reason: string) {
    if (this.#droppedBefore !== undefined) return
    this.#droppedBefore = this.dropped
    this.#complain(`The log cannot be written: ${reason}. The service goes on, and drops lines that wait for too long`)
  }

  #recovered () {
    if (this.#droppedBefore === undefined) return
    this.#complain(`The log is written again; ${this.dropped - this.#droppedBefore} lines were dropped`)
    this.#droppedBefore = undefined
  }
}

/** Standard output, which is a pipe or a file here: lines at a terminal take another way. */
export const standardOutput = process.stdout instanceof Socket
  ? new LogOutput(writeToPipe(process.stdout), console.error)
  : new LogOutput((bytes, done) => write(1, bytes, done), console.error)

/** As a stream, since a thread that waited in a `write` would keep the process from ending. */
function writeToPipe (pipe: Socket): Write {
  // `done` gets the errors.
  pipe.on('error', () => {})
  return (bytes, done) => { pipe.write(bytes, error => done(error)) }
}
