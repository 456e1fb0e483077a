import type { Socket } from 'node:net'

/** What a request makes the process hold. */
export interface Held {
  /** The network of its client. Only asked for when some have to go. */
  network (): string
  /** The bytes of its body, and of a response that it shares with no other. */
  own: number
  /** A body that several requests may wait for, or be sent: its bytes count once. */
  shared: { readonly length: number } | undefined
}

/** A connection with what its requests hold. */
interface Weighed extends Pick<Held, 'network'> {
  socket: Socket
  bytes: number
}

/** The part of the limit that may be in use after connections were closed: so they are looked through less often. */
const ROOM = 0.9

/** The part of the limit that may come before it is counted what is held. */
const STEP = 1 / 16

/**
 * Bounds the bytes that clients make the process hold: bodies that arrive, bodies that are read from the database,
 * responses that the kernel has not taken. Past the limit it closes connections: of the network that holds the most,
 * those that hold the most; of equals, the oldest. Others are served.
 */
export class Budget {
  /** How many connections were closed so far. */
  closed = 0
  readonly #limit: number
  readonly #connections = new Map<Socket, Held[]>()
  #grown = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** The bytes that are held. */
  get bytes () { return this.#weigh().reduce((sum, { bytes }) => sum + bytes, 0) }

  /** Begins to count what a request holds, until `end`, or until its connection is gone. */
  begin (socket: Socket, network: () => string): Held {
    let requests = this.#connections.get(socket)
    if (!requests) {
      this.#connections.set(socket, requests = [])
      socket.once('close', () => this.#connections.delete(socket))
    }
    const held = { network, own: 0, shared: undefined }
    requests.push(held)
    return held
  }

  /** The response of the request is taken. */
  end (socket: Socket, held: Held) {
    const requests = this.#connections.get(socket)
    requests?.splice(requests.indexOf(held), 1)
  }

  /** Makes room if need be, when requests hold so many bytes more. */
  grow (bytes: number) {
    this.#grown += bytes
    if (this.#grown < STEP * this.#limit) return
    this.#grown = 0
    let all = this.bytes
    if (all <= this.#limit) return
    const room = ROOM * this.#limit
    // What several share is only freed with the last of them, so it is counted again.
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

  /** The connections that hold something, and how much. */
  #weigh () {
    const holders = new Map<object, number>()
    for (const requests of this.#connections.values()) {
      for (const { shared } of requests) if (shared) holders.set(shared, (holders.get(shared) ?? 0) + 1)
    }
    const weighed: Weighed[] = []
    for (const [socket, requests] of this.#connections) {
      let bytes = 0
      for (const { own, shared } of requests) bytes += own + (shared ? shared.length / holders.get(shared)! : 0)
      // Behind a proxy, the clients of a connection differ.
      if (bytes > 0) weighed.push({ socket, bytes, network: requests.at(-1)!.network })
    }
    return weighed
  }
}

/** The connections of the network that holds the most, in the order in which they go. */
function heaviestNetwork (weighed: Weighed[]) {
  const sums = new Map<string, number>()
  for (const { bytes, network } of weighed) sums.set(network(), (sums.get(network()) ?? 0) + bytes)
  const [heaviest] = [...sums].reduce((one, other) => other[1] > one[1] ? other : one)
  return weighed.filter(({ network }) => network() === heaviest).sort((one, other) => other.bytes - one.bytes)
}
