import type { ServerResponse } from 'node:http'

import { type Chunks, lengthOf } from './cached-body.ts'

/** How often finished responses are looked for, in milliseconds. */
const SWEEP_INTERVAL = 1000

/** Counts the bytes of bodies that clients have not read yet. A body that several responses share counts once. */
export class UnsentBodies {
  readonly #responses = new Map<ServerResponse, Chunks>()
  readonly #timer = setInterval(() => this.#sweep(), SWEEP_INTERVAL).unref()

  /** The bytes of all bodies that are being sent. */
  get bytes () {
    return [...new Set(this.#responses.values())].reduce((sum, chunks) => sum + lengthOf(chunks), 0)
  }

  /** Notes that a response holds a body until it has been sent, or its connection is gone. */
  add (response: ServerResponse, chunks: Chunks) {
    this.#responses.set(response, chunks)
  }

  stop () {
    clearInterval(this.#timer)
  }

  /** Not by the event `close`: a response that waits behind another one of its connection has none when that breaks. */
  #sweep () {
    for (const response of this.#responses.keys()) {
      if (response.writableFinished || response.req.socket.destroyed) this.#responses.delete(response)
    }
  }
}
