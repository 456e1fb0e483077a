import type { Socket } from 'node:net'

import type { Client } from './client-network.ts'

/** The memory that a request holds. */
export interface Held {
  /** Its network is read only if connections must be closed. */
  client: Client
  /** The bytes of its body and of a response that is not shared. */
  own: number
  /** A body that several requests share. Its bytes count once. */
  shared: { readonly length: number } | undefined
}

/** A connection with the bytes that its requests hold. */
interface Weighed extends Pick<Held, 'client'> {
  socket: Socket
  bytes: number
}

/** Fraction of the limit that may remain in use after closing connections, so that the next search comes later. */
const ROOM = 0.9

/** Fraction of the limit that may be added before the held bytes are counted again. */
const STEP = 1 / 16

/**
 * Limits the bytes that clients make the process hold: request bodies, bodies that are read from the database, and
 * responses that the kernel has not accepted. Beyond the limit, it closes connections of the network that holds the
 * most: first those that hold the most, and of equals the oldest. Other clients are served.
 */
export class Budget {
  closed = 0
  readonly #limit: number
  readonly #connections = new Map<Socket, Held[]>()
  #grown = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  get bytes () { return this.#weigh().reduce((sum, { bytes }) => sum + bytes, 0) }

  /** Begins to count the bytes that a request holds, until `end` or until its connection closes. */
  begin (socket: Socket, client: Client): Held {
    let requests = this.#connections.get(socket)
    if (!requests) {
      this.#connections.set(socket, requests = [])
      socket.once('close', () => this.#connections.delete(socket))
    }
    const held = { client, own: 0, shared: undefined }
    requests.push(held)
    return held
  }

  /** Call when the kernel has accepted the response. */
  end (socket: Socket, held: Held) {
    const requests = this.#connections.get(socket)
    requests?.splice(requests.indexOf(held), 1)
  }

  /** Call when requests hold `bytes` more. Closes connections if the limit is exceeded. */
  grow (bytes: number) {
    this.#grown += bytes
    if (this.#grown < STEP * this.#limit) return
    this.#grown = 0
    let all = this.bytes
    if (all <= this.#limit) return
    const room = ROOM * this.#limit
    // Counts again, because a shared body is freed only with its last request.
    for (; all > room; all = this.bytes) {
      for (const { socket, bytes } of heaviestNetwork(this.#weigh())) {
        if (all <= room) break
        all -= bytes
        this.closed++
        this.#connections.delete(socket)
        socket.destroy()
      }
    }
  }

  /** Returns the connections that hold bytes, with their number of bytes. */
  #weigh () {
    const holders = new Map<object, number>()
    for (const requests of this.#connections.values()) {
      for (const { shared } of requests) if (shared) holders.set(shared, (holders.get(shared) ?? 0) + 1)
    }
    const weighed: Weighed[] = []
    for (const [socket, requests] of this.#connections) {
      let bytes = 0
      for (const { own, shared } of requests) bytes += own + (shared ? shared.length / holders.get(shared)! : 0)
      // Behind a proxy, requests of a connection come from different clients.
      if (bytes > 0) weighed.push({ socket, bytes, client: requests.at(-1)!.client })
    }
    return weighed
  }
}

/** Returns the connections of the network that holds the most, in the order to close them. */
function heaviestNetwork (weighed: Weighed[]) {
  const sums = new Map<string, number>()
  for (const { bytes, client: { network } } of weighed) sums.set(network, (sums.get(network) ?? 0) + bytes)
  const [heaviest] = [...sums].reduce((one, other) => other[1] > one[1] ? other : one)
  return weighed.filter(({ client }) => client.network === heaviest).sort((one, other) => other.bytes - one.bytes)
}
