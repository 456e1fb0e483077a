import { withTimeout } from '../timeout.ts'

/** The process at the other end: a worker, or for a worker its primary, which is `process`. */
interface Peer {
  send? (message: Message, handle?: undefined, options?: undefined, callback?: (error: Error | null) => void): boolean
  on (event: 'message', listener: (message: Message) => void): unknown
  on (event: 'disconnect', listener: () => void): unknown
}

type Message = { id: number, question: string, argument?: unknown } | { id: number, answer?: unknown, error?: string }

interface Pending {
  resolve (answer: any): void
  reject (error: Error): void
}

/** Asks another process of the cluster for something that JSON can carry, and answers what that one asks. */
export class Channel {
  readonly #peer: Peer
  readonly #answers: Record<string, (argument: any) => unknown>
  readonly #pending = new Map<number, Pending>()
  #lastId = 0

  constructor (peer: Peer, answers: Record<string, (argument: any) => unknown> = {}) {
    this.#peer = peer
    this.#answers = answers
    peer.on('message', message => this.#receive(message))
    peer.on('disconnect', () => {
      for (const { reject } of this.#pending.values()) reject(new Error('The other process has ended'))
    })
  }

  /** Answers this question, or throws, from now on. */
  answer (question: string, answer: (argument: any) => unknown) {
    this.#answers[question] = answer
  }

  /** Asks a question. Rejects when the other process cannot answer, ends, or takes longer than so many seconds. */
  async ask<T> (question: string, argument?: unknown, seconds = 5): Promise<T> {
    const id = ++this.#lastId
    const answered = new Promise<T>((resolve, reject) => { this.#pending.set(id, { resolve, reject }) })
    this.#send({ id, question, argument })
    try {
      return await withTimeout(answered, seconds)
    } finally {
      this.#pending.delete(id)
    }
  }

  async #receive (message: Message) {
    const { id } = message
    if ('question' in message) {
      try {
        this.#send({ id, answer: await this.#answers[message.question]!(message.argument) })
      } catch (error) {
        this.#send({ id, error: (error as Error).message })
      }
    } else if (message.error === undefined) {
      this.#pending.get(id)?.resolve(message.answer)
    } else {
      this.#pending.get(id)?.reject(new Error(message.error))
    }
  }

  /** What cannot be sent, because the other process has ended, gets no answer either. */
  #send (message: Message) {
    this.#peer.send!(message, undefined, undefined, error => {
      if (error) this.#pending.get(message.id)?.reject(error)
    })
  }
}
