import sonicBoom from 'sonic-boom'

import { LOG_FLUSH_SECONDS } from '../timeout.ts'

/** Bytes in one write, unless a line alone is longer. */
const BATCH_BYTES = 65_536

/** Bytes of lines that wait at most; further ones are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/**
 * Opens a file or a pipe as the place where the log goes. The service never waits for it: while a disk is full or a
 * reader stands still, lines wait, and beyond 16 MB they are dropped and counted. The next line tries again. pino's own
 * destination would try to write for ever at the exit. `complain` gets a sentence when lines cannot be written, and
 * when they are again.
 */
export function openLog (fd: number, complain: (message: string) => void) {
  // With a `minLength`, a flush waits until all is written; each line is longer, and written at once.
  const output = new sonicBoom.SonicBoom({ fd, minLength: 1, maxLength: MAX_WAITING_BYTES, maxWrite: BATCH_BYTES })
  const log = {
    /** Lines dropped since the start. */
    dropped: 0,
    write (line: string) { output.write(line) },
    /** Calls back when everything is written, or when that fails or takes too long. */
    flush (done: () => void) {
      const timer = setTimeout(done, LOG_FLUSH_SECONDS * 1000)
      output.flush(() => {
        clearTimeout(timer)
        done()
      })
    },
  }
  /** The lines dropped before the current trouble; `undefined` while all is well. */
  let droppedBefore: number | undefined
  output.on('error', ({ message }) => onTrouble(message))
  output.on('drop', () => {
    onTrouble('it is not read fast enough')
    log.dropped++
  })
  output.on('drain', () => {
    if (droppedBefore === undefined) return
    complain(`The log is written again; ${log.dropped - droppedBefore} lines were dropped`)
    droppedBefore = undefined
  })
  return log

  function onTrouble (reason: string) {
    if (droppedBefore !== undefined) return
    droppedBefore = log.dropped
    complain(`The log cannot be written: ${reason}. The service goes on, and drops lines that wait for too long`)
  }
}

/**
 * Standard output, which is a pipe or a file here: lines at a terminal take another way. `process.stdout` makes a pipe
 * non-blocking, since a thread that waited in a `write` would keep the process from ending.
 */
export const standardOutput = openLog(process.stdout.fd, console.error)
