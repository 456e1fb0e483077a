import { setMaxListeners } from 'node:events'

const stopping = new AbortController()
const tasks: (() => unknown)[] = []

/** Aborted when somebody interrupts the benchmark; ends the programs that run then. */
export const interrupted = stopping.signal
setMaxListeners(0, interrupted)

/** Has something undone when the benchmark ends, whichever way; the last is undone first. */
export function atEnd (task: () => unknown) {
  tasks.push(task)
}

let cleaning: Promise<void> | undefined

/** Undoes everything, even if a part of it fails. Whoever calls it waits for the end. */
export function cleanUp () {
  cleaning ??= undo()
  return cleaning
}

async function undo () {
  for (let task = tasks.pop(); task; task = tasks.pop()) {
    try {
      await task()
    } catch (error) {
      console.error(error)
    }
  }
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, async () => {
    console.error('\nStopping')
    stopping.abort()
    await cleanUp()
    process.exit(130)
  })
}
