import { setImmediate } from 'node:timers/promises'

import { withinDeadline } from './deadline.ts'

/** A read that runs, or is about to. */
interface Run<T> {
  begun: boolean
  result: Promise<T>
  ended: Promise<void>
  /** The one after it, when somebody waits for that. */
  next?: Promise<T>
}

/**
 * Makes a function that runs reads so that callers share them. A call has the read begin when all that has arrived by
 * now has been looked at: whoever asks until then shares it. Who asks while one of the same key runs waits for that to
 * end, and shares the next one with everybody else who waits. So nobody is answered by a read that began before they
 * asked, and never more than one of a key runs at a time. Whoever waits for longer than so many seconds gets a
 * DeadlineError.
 */
export function joinReads<T> (seconds: number) {
  const running = new Map<string, Run<T>>()

  return function join (key: string, read: () => Promise<T>): Promise<T> {
    const current = running.get(key)
    if (!current) return start(key, read)
    if (!current.begun) return current.result
    current.next ??= withinDeadline(current.ended.then(() => start(key, read)), seconds)
    return current.next
  }

  function start (key: string, read: () => Promise<T>) {
    const result = begin()
    const current: Run<T> = { begun: false, result, ended: result.then(end, end) }
    running.set(key, current)
    return result

    async function begin () {
      await setImmediate()
      current.begun = true
      return read()
    }

    function end () {
      if (!current.next) running.delete(key)
    }
  }
}
