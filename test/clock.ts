import type { Test } from './suite.ts'

/**
 * Stops the clock of timers of 100 ms or more that are set from now on. Returns a function that lets time pass.
 * `mock.timers` would not clear timers that were set before, such as those of idle connections to the database.
 */
export function stopClock (t: Test) {
  const { setTimeout, clearTimeout } = globalThis
  const timers = new Map<unknown, { work: () => void, at: number }>()
  let now = 0
  t.intercept(globalThis, 'setTimeout', {
    value (work: (...args: unknown[]) => void, delay = 0, ...args: unknown[]) {
      if (delay < 100) return setTimeout(work, delay, ...args)
      const timer = setTimeout(() => {}, 0)
      timers.set(timer, { work: () => work(...args), at: now + delay })
      return timer
    },
  })
  t.intercept(globalThis, 'clearTimeout', {
    value (timer?: NodeJS.Timeout) {
      timers.delete(timer)
      clearTimeout(timer)
    },
  })
  return (milliseconds: number) => {
    now += milliseconds
    for (const [timer, { work, at }] of timers) {
      if (at > now) continue
      timers.delete(timer)
      work()
    }
  }
}

/** Returns a function that turns the clock of `performance` ahead by so many milliseconds. Timers run as before. */
export function turnClock (t: Test) {
  const now = performance.now.bind(performance)
  let ahead = 0
  t.capture(performance, 'now', () => now() + ahead)
  return (milliseconds: number) => { ahead += milliseconds }
}
