import { withTimeout } from '../timeout.ts'

/** The process at the other end: a worker, or for a worker its supervisor, which is `process`. */
interface Peer {
  send? (message: Message, handle?: undefined, options?: undefined, callback?: (error: Error | null) => void): boolean
  on (event: 'message', listener: (message: Message) => void): unknown
  on (event: 'disconnect', listener: () => void): unknown
}

type Message = { id: number, method: string, argument?: unknown } | { id: number, result?: unknown, error?: string }

interface Pending {
  resolve (result: any): void
  reject (error: Error): void
}

/** Requests to another process of the cluster and responses to its own, both as JSON. */
export class Channel {
  readonly #peer: Peer
  readonly #handlers: Record<string, (argument: any) => unknown>
  readonly #pending = new Map<number, Pending>()
  #lastId = 0

  constructor (peer: Peer, handlers: Record<string, (argument: any) => unknown> = {}) {
    this.#peer = peer
    this.#handlers = handlers
    peer.on('message', message => this.#receive(message))
    peer.on('disconnect', () => {
      for (const { reject } of this.#pending.values()) reject(new Error('The other process has ended'))
    })
  }

  /** Sets what handles requests for a method: it returns the result, or throws. */
  handle (method: string, handler: (argument: any) => unknown) {
    this.#handlers[method] = handler
  }

  /** Sends a request. Rejects when the other process fails, ends, or takes longer than so many seconds. */
  async request<T> (method: string, argument?: unknown, seconds = 5): Promise<T> {
    const id = ++this.#lastId
    const response = new Promise<T>((resolve, reject) => { this.#pending.set(id, { resolve, reject }) })
    this.#send({ id, method, argument })
    try {
      return await withTimeout(response, seconds)
    } finally {
      this.#pending.delete(id)
    }
  }

  async #receive (message: Message) {
    const { id } = message
    if ('method' in message) {
      try {
        this.#send({ id, result: await this.#handlers[message.method]!(message.argument) })
      } catch (error) {
        this.#send({ id, error: (error as Error).message })
      }
    } else if (message.error === undefined) {
      this.#pending.get(id)?.resolve(message.result)
    } else {
      this.#pending.get(id)?.reject(new Error(message.error))
    }
  }

  /** Rejects the request if it cannot be sent, because the other process has ended. */
  #send (message: Message) {
    this.#peer.send!(message, undefined, undefined, error => {
      if (error) this.#pending.get(message.id)?.reject(error)
    })
  }
}
