import type { Socket } from 'node:net'

import type { Client } from '../fair-queue.ts'

/** The memory that a request holds. */
export interface Held {
  /** Counting bytes does not read its network, which is computed on first use. */
  client: Client
  /** The bytes of its headers, of its body, and of a response that is not shared. */
  own: number
  /** A body that several requests share. Its bytes count once. */
  shared: { readonly length: number } | undefined
  /** The service no longer needs its body. */
  isAnswered: boolean
}

interface Connection {
  /** The client that pays while no request runs. */
  client: Client
  /** Its own bytes. */
  own: number
  /** The requests whose responses the kernel has not accepted. */
  requests: Held[]
  /** Value of `socket.bytesRead` when the last request began or ended. Later bytes belong to the next headers. */
  bytesRead: number
}

/** A connection, the client that pays for it, and the bytes that it holds. */
interface Share extends Pick<Held, 'client'> {
  socket: Socket
  bytes: number
}

/** Heap of an idle connection: its socket, its parser and our records. */
const CONNECTION_BYTES = 8192

/** Heap of a header besides its characters: its strings, and its places in a list and in an object. */
const HEADER_BYTES = 110

/** Fraction of the limit that may remain in use after closing connections, so that the next count comes later. */
const REMAINING = 0.9

/** Fraction of the limit from which uploads are refused, so that connections of other clients are not closed. */
const FULL = 3 / 4

/** Fraction of the limit that may be added before the next count, which takes 2 ms for 10,000 connections. */
const UNCOUNTED = 1 / 16

/** Returns the heap that headers take, from `rawHeaders` of Node. */
export function sizeOfHeaders (rawHeaders: string[]) {
  return rawHeaders.reduce((sum, { length }) => sum + length, HEADER_BYTES * rawHeaders.length / 2)
}

/**
 * Limits the bytes that clients make the process hold: connections, headers, request bodies, bodies that are read from
 * the database, and responses that the kernel has not accepted. Beyond the limit, it closes connections of the network
 * that holds the most, beginning with the largest. Of connections of the same size, it closes the oldest first. Other
 * clients are served.
 */
export class Budget {
  closed = 0
  readonly #limit: number
  /** Maximum number of bytes of headers that are still arriving. */
  readonly #maxHeaders: number
  /** Heap of as many headers as a request may have. Node does not tell the number before the headers end. */
  readonly #headersOverhead: number
  readonly #connections = new Map<Socket, Connection>()
  /** Requests without an answer whose connections have closed. The process holds their bodies until their answers. */
  readonly #abandoned = new Set<Held>()
  /** Bytes that were added since the last count. */
  #added = 0

  constructor (limit: number, headers: { count: number, bytes: number }) {
    this.#limit = limit
    this.#maxHeaders = headers.bytes
    this.#headersOverhead = headers.count * HEADER_BYTES
  }

  get bytes () { return this.#count().reduce((sum, { bytes }) => sum + bytes, 0) }

  /** Begins to count a connection and the bytes that arrive on it, until it closes. */
  open (socket: Socket, client: Client) {
    this.#track(socket, client, CONNECTION_BYTES)
    this.#add(CONNECTION_BYTES)
  }

  /** Begins to count the bytes that a request holds, until `end` or until its connection closes. */
  begin (socket: Socket, client: Client): Held {
    // A request of `inject` has no connection.
    const connection = this.#connections.get(socket) ?? this.#track(socket, client, 0)
    const held = { client, own: 0, shared: undefined, isAnswered: false }
    connection.requests.push(held)
    connection.bytesRead = socket.bytesRead
    return held
  }

  /** Call when the kernel has accepted the response. */
  end (socket: Socket, held: Held) {
    const connection = this.#connections.get(socket)
    if (!connection) return
    connection.requests.splice(connection.requests.indexOf(held), 1)
    connection.bytesRead = socket.bytesRead
  }

  /** Call when a request holds `bytes` more that it does not share. Closes connections if the limit is exceeded. */
  hold (held: Held, bytes: number) {
    held.own += bytes
    this.#add(bytes)
  }

  /**
   * Call when a request holds this body, perhaps together with others, and when the body has grown by `bytes`. Only one
   * of the requests adds the bytes. Closes connections if the limit is exceeded.
   */
  share (held: Held, body: { readonly length: number }, bytes: number) {
    held.shared = body
    this.#add(bytes)
  }

  /** Call when a request is answered with so many bytes, also if nobody gets the response. */
  answer (held: Held, bytes: number) {
    // A shared body counts already. If its query had no row, it is empty, and the handler sends a separate body.
    if (!held.shared?.length) this.hold(held, bytes)
    held.isAnswered = true
    this.#abandoned.delete(held)
  }

  /** Closes connections if the limit is exceeded. Call it regularly, because nothing tells that headers arrive. */
  enforce () {
    this.#added = 0
    let all = this.bytes
    if (all <= this.#limit) return
    const remaining = REMAINING * this.#limit
    // Counts again, because a shared body is freed only with its last request.
    for (; all > remaining; all = this.bytes) {
      for (const { socket, bytes } of heaviestNetwork(this.#count())) {
        if (all <= remaining) break
        all -= bytes
        this.closed++
        this.#forget(socket)
        socket.destroy()
      }
    }
  }

  /**
   * Tells whether most of the limit is in use, and no network holds more than the network of this client. The bodies
   * of clients that have gone count, because the service still holds them. If they did not, 229 uploads that clients
   * left while PostgreSQL was stopped would take 2,281 MB. `enforce` does not count these bodies, because no connection
   * that it can close would free them.
   */
  isFullFor ({ network }: Client) {
    const abandoned = Array.from(this.#abandoned, ({ client, own }) => ({ client, bytes: own }))
    const sums = sumByNetwork([...this.#count(), ...abandoned])
    const all = [...sums.values()]
    return all.reduce((sum, bytes) => sum + bytes, 0) > FULL * this.#limit && sums.get(network) === Math.max(...all)
  }

  #add (bytes: number) {
    this.#added += bytes
    if (this.#added >= UNCOUNTED * this.#limit) this.enforce()
  }

  #track (socket: Socket, client: Client, own: number) {
    const connection: Connection = { client, own, requests: [], bytesRead: 0 }
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#forget(socket))
    return connection
  }

  #forget (socket: Socket) {
    for (const held of this.#connections.get(socket)?.requests ?? []) {
      if (!held.isAnswered) this.#abandoned.add(held)
    }
    this.#connections.delete(socket)
  }

  /** Returns the share of each connection. */
  #count () {
    const holders = new Map<object, number>()
    for (const { requests } of this.#connections.values()) {
      for (const { shared } of requests) if (shared) holders.set(shared, (holders.get(shared) ?? 0) + 1)
    }
    return Array.from(this.#connections, ([socket, { client, own, requests, bytesRead }]): Share => {
      let bytes = own
      const unfinished = Math.min(socket.bytesRead - bytesRead, this.#maxHeaders)
      if (unfinished > 0) bytes += this.#headersOverhead + unfinished
      for (const { own, shared } of requests) bytes += own + (shared ? shared.length / holders.get(shared)! : 0)
      // Behind a proxy, requests of a connection come from different clients.
      return { socket, bytes, client: requests.at(-1)?.client ?? client }
    })
  }
}

/** Returns the connections of the network that holds the most, in the order to close them. */
function heaviestNetwork (shares: Share[]) {
  const [heaviest] = [...sumByNetwork(shares)].reduce((one, other) => other[1] > one[1] ? other : one)
  return shares.filter(({ client }) => client.network === heaviest).sort((one, other) => other.bytes - one.bytes)
}

function sumByNetwork (shares: Omit<Share, 'socket'>[]) {
  const sums = new Map<string, number>()
  for (const { bytes, client: { network } } of shares) sums.set(network, (sums.get(network) ?? 0) + bytes)
  return sums
}
