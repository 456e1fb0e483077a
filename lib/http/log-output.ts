import sonicBoom from 'sonic-boom'

import { LOG_FLUSH_SECONDS } from '../config/timeout.ts'

/** Maximum number of bytes per write, unless a single line is longer. */
const BATCH_BYTES = 65_536

/** Maximum number of bytes that wait. Further lines are dropped. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024

/**
 * Opens a file or pipe as the output of the log. The service never blocks on it: while a disk is full or a reader is
 * stuck, lines wait, and beyond 16 MB they are dropped and counted. The next line retries. pino's own destination would
 * retry forever at the exit. `complain` is called when writing fails and when it works again.
 */
export function openLog (fd: number, complain: (message: string) => void) {
  // `minLength` makes a flush wait until everything is written. Lines are longer, so they are written at once.
  const output = new sonicBoom.SonicBoom({ fd, minLength: 1, maxLength: MAX_WAITING_BYTES, maxWrite: BATCH_BYTES })
  const log = {
    dropped: 0,
    write (line: string) { output.write(line) },
    /** Calls back when everything is written, or after a failure or timeout. */
    flush (done: () => void) {
      const timer = setTimeout(done, LOG_FLUSH_SECONDS * 1000)
      output.flush(() => {
        clearTimeout(timer)
        done()
      })
    },
  }
  /** Number of lines dropped before the current failure; `undefined` while writing works. */
  let droppedBefore: number | undefined
  output.on('error', ({ message }) => onTrouble(message))
  output.on('drop', () => {
    onTrouble('it is not read fast enough')
    log.dropped++
  })
  output.on('drain', () => {
    if (droppedBefore === undefined) return
    complain(`Writing the log works again. ${log.dropped - droppedBefore} lines were dropped.`)
    droppedBefore = undefined
  })
  return log

  function onTrouble (reason: string) {
    if (droppedBefore !== undefined) return
    droppedBefore = log.dropped
    complain(`Cannot write the log: ${reason}. The service continues, and drops lines if too many wait.`)
  }
}

/**
 * Standard output as a pipe or file; lines at a terminal use `process.stdout`. Accessing `process.stdout` makes a pipe
 * non-blocking, because a thread that blocks in `write` would prevent the process from exiting.
 */
export const standardOutput = openLog(process.stdout.fd, console.error)
