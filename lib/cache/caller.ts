import type { FastifyReply } from 'fastify'

/** A request for a body. A read needs to know nothing else about it. */
export interface Caller {
  /** Tells whether its client still waits for the body. */
  isWanted (): boolean
  /** Runs the read after admission. Rejects if admission refuses it. */
  admit<T> (read: SharedRead<T>): Promise<T>
  /** Tells that this caller also waits for the admission of the read, which may then come sooner. */
  join (read: SharedRead<unknown>): void
  /**
   * Tells that this caller holds the body, which has grown. Throws if the body is too large, which fails its read.
   */
  hold (body: { readonly length: number }): void
}

/** A read that several callers share. Its admission decides once for all of them. */
export interface SharedRead<T> {
  /** Whether it reads a list. */
  readonly isList: boolean
  run (): Promise<T>
  /** Tells whether any of its callers still waits. */
  isWanted (): boolean
}

/** Returns a caller without limits. It waits as long as its reply can be sent, or for any time without a reply. */
export function unlimitedCaller (reply?: FastifyReply): Caller {
  return {
    isWanted: () => !reply?.sent && !reply?.request.socket.destroyed,
    admit: read => read.run(),
    join () {},
    hold () {},
  }
}
