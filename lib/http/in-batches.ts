import { setImmediate } from 'node:timers/promises'

/**
 * Number of tasks in a turn of the event loop: 100 messages take about 2 ms, 100 reads begin within 12 ms, and 100
 * streams of clients that have gone end within 5 ms.
 */
const BATCH = 100

/** Tasks that share the turns of the event loop. */
export interface Turn {
  /** Number of tasks in this turn. */
  count: number
  next?: Promise<void> | undefined
}

/**
 * Runs a task for each item. After BATCH tasks, waits for the next turn, so that others are served in between. When 134
 * clients with 16 streams each closed their connections at once, requests of others waited for 110 to 330 ms without
 * this, and 40 with it.
 */
export async function inBatches<Item> (items: Iterable<Item>, task: (item: Item) => void, turn: Turn = { count: 0 }) {
  for (const item of items) {
    while (turn.count >= BATCH) {
      turn.next ??= setImmediate().then(() => {
        turn.count = 0
        turn.next = undefined
      })
      await turn.next
    }
    turn.count++
    task(item)
  }
}
