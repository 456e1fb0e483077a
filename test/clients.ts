import type { FairQueue } from '#lib/http/fair-queue.js'

/** Returns a client of queues in this network. */
export const clientIn = (network: string, isWanted = () => true) => ({ network, isWanted })

/** Takes all places of a queue, each from a network of its own. Returns a function that gives them back. */
export function fillQueue (queue: FairQueue) {
  let end!: () => void
  const ended = new Promise<void>(resolve => { end = resolve })
  for (let n = 0; queue.waiting === 0; n++) queue.run(clientIn(`in front ${n}`), () => ended)
  return end
}
