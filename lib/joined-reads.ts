import { setImmediate } from 'node:timers/promises'

import { withinDeadline } from './deadline.ts'

/** A read that runs, or is about to. */
interface Run<T> {
  begun: boolean
  /** How many share it. */
  calls: number
  result: Promise<T>
  ended: Promise<void>
  /** The one after it, when somebody waits for that. */
  next?: Promise<T>
}

/** How long a read waits at most for more who share it, in milliseconds. */
const GATHERING = 1

/**
 * Makes a function that runs reads so that callers share them. A call has the read begin as soon as a turn of the event
 * loop brings nobody else who asks the same, or after a millisecond: whoever asks until then shares it. Who asks while
 * one of the same key runs waits for that to end, and shares the next one with everybody else who waits. So nobody is
 * answered by a read that began before they asked, and never more than one of a key runs at a time. Whoever waits for
 * longer than so many seconds gets a DeadlineError.
 *
 * To wait for a quiet turn takes a few microseconds. It pays because the system may run the database on the very core
 * that has just asked it: the question takes the time of some ten answers, however many wait for it.
 */
export function joinReads<T> (seconds: number) {
  const running = new Map<string, Run<T>>()

  return function join (key: string, read: () => Promise<T>): Promise<T> {
    const current = running.get(key)
    if (!current) return start(key, read)
    if (!current.begun) {
      current.calls++
      return current.result
    }
    current.next ??= withinDeadline(current.ended.then(() => start(key, read)), seconds)
    return current.next
  }

  function start (key: string, read: () => Promise<T>) {
    const current = { begun: false, calls: 1 } as Run<T>
    running.set(key, current)
    current.result = gather(current).then(read)
    current.ended = current.result.then(end, end)
    return current.result

    function end () {
      if (!current.next) running.delete(key)
    }
  }
}

/** Marks a read as begun when nobody joins it any more. */
async function gather (run: Run<unknown>) {
  const end = performance.now() + GATHERING
  let calls = 0
  while (run.calls > calls && performance.now() < end) {
    calls = run.calls
    await setImmediate()
  }
  run.begun = true
}
