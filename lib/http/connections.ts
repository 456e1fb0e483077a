import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection of a client. */
export interface Connection {
  /** The network of its latest client. Behind a proxy, requests of a connection come from different clients. */
  network: string
  /** Whether it belongs to a proxy, which sends requests of many clients over it. */
  readonly isShared: boolean
  /** Responses that are not complete. */
  readonly responses: Set<ServerResponse>
  /** Value of `socket.bytesRead` when the connection was last without a request. */
  bytesRead: number
  /** Value of `socket.bytesRead` at its latest request. */
  counted: number
  /** Number of its requests that wait for a later turn of the event loop. */
  waiting: number
}

/** Time of requests in a turn of the event loop after which further ones wait. */
const TURN_MS = 5

/**
 * Bytes of requests in a turn of the event loop after which other connections are read in the next one. In memory, a
 * request can be seven times as long.
 */
const TURN_BYTES = 2 ** 21

/** Time after a flood in which connections of networks that flood are not read. A flood takes up to 40 ms. */
const PAUSE_MS = 100

/** Time after its last flood in which a network counts as one that floods. */
const FLOODING_MS = 1000

/**
 * The open connections, the oldest first. Node does not list them.
 *
 * Keeps turns of the event loop short, and fair by network. In a turn, Node would read up to 2 MB of each connection,
 * begin all requests in them, and accept a single new connection: alongside 400 clients that send 114 KB for each
 * request, a turn took 200 ms, half of the requests of others took more than a second, and new clients waited for 30.
 */
export class Connections extends Map<Socket, Connection> {
  /** Connections that are not read. */
  readonly #paused = new Set<Socket>()
  /** Requests that wait, by network. The next one is of the first network. */
  readonly #waiting = new Map<string, (() => void)[]>()
  /** Networks that flood, with the times of their last floods. */
  readonly #flooding = new Map<string, number>()
  /** Runs for `PAUSE_MS` after each flood. */
  #pause?: NodeJS.Timeout | undefined
  /** Time at which this turn began; `undefined` until its first request. */
  #began?: number | undefined
  /** Bytes of the requests of this turn. */
  #bytes = 0

  /** Adds a new connection until it closes. */
  add (socket: Socket, network: string, isShared = false) {
    const connection: Connection = { network, isShared, responses: new Set(), bytesRead: 0, counted: 0, waiting: 0 }
    this.set(socket, connection)
    socket.once('close', () => this.delete(socket))
    // Node resumes a connection to read a body, and after a request. It begins to read at this event, even if the
    // connection has been paused in the meantime.
    socket.on('resume', () => { if (this.#paused.has(socket)) socket.pause().emit('pause') })
    // Not now, because Node begins to read a new connection in the next tick.
    setImmediate(() => { if (this.#mustPause(socket)) this.#stopReading([socket]) })
    return connection
  }

  /**
   * Begins a request: now, or in a later turn, in which networks take turns. Until then, its connection is not read.
   * The request of a connection that closes while it waits never begins.
   */
  begin (socket: Socket, request: () => void) {
    const connection = this.get(socket)!
    const elapsed = this.#elapsed()
    this.#bytes += socket.bytesRead - connection.counted
    connection.counted = socket.bytesRead
    if (this.#bytes > TURN_BYTES) {
      this.#bytes = 0
      this.#stopReading(this.keys())
    }
    if (this.#waiting.size === 0 && elapsed < TURN_MS) return request()
    connection.waiting++
    this.#stopReading([socket])
    const requests = this.#waiting.get(connection.network) ?? []
    this.#waiting.set(connection.network, requests)
    requests.push(() => {
      connection.waiting--
      if (!socket.destroyed) request()
    })
  }

  /**
   * Closes a connection that floods, and ends the turn. In a turn, Node parses 64 KB of each connection: up to 590
   * pipelined requests, or 11,000 chunks. Only then does it answer, and measure memory: 400 floods in a turn took 2.6
   * seconds and 250 MB of heap. The other connections are read in the next turn, and those of networks that flood after
   * a pause. Otherwise, each turn would contain a flood.
   */
  closeFlood (socket: Socket) {
    if (socket.destroyed) return
    socket.destroy()
    this.#flooding.set(this.get(socket)!.network, performance.now())
    clearTimeout(this.#pause)
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      for (const network of this.#flooding.keys()) if (!this.#isFlooding(network)) this.#flooding.delete(network)
      this.#readAgain()
    }, PAUSE_MS).unref()
    this.#stopReading(this.keys())
  }

  #stopReading (sockets: Iterable<Socket>) {
    this.#elapsed()
    for (const socket of sockets) {
      // Node itself pauses connections while a body or a response waits. These stay as they are.
      if (socket.isPaused()) continue
      socket.pause()
      this.#paused.add(socket)
    }
  }

  /** Reads the connections again that need not wait. */
  #readAgain () {
    for (const socket of this.#paused) {
      if (this.get(socket)?.waiting || this.#mustPause(socket)) continue
      this.#paused.delete(socket)
      socket.resume()
    }
  }

  /** Tells whether a connection must not be read now because its network floods. */
  #mustPause (socket: Socket) {
    const connection = this.get(socket)
    return this.#pause !== undefined && connection?.isShared === false && this.#isFlooding(connection.network)
  }

  #isFlooding (network: string) {
    return performance.now() - (this.#flooding.get(network) ?? -Infinity) < FLOODING_MS
  }

  /** Returns the time since this turn began, and begins it if it has not. */
  #elapsed () {
    const now = performance.now()
    if (this.#began === undefined) {
      this.#began = now
      setImmediate(() => this.#endTurn())
    }
    return now - this.#began
  }

  /** Reads connections again, and begins requests that wait, which belong to the next turn. */
  #endTurn () {
    this.#began = undefined
    this.#bytes = 0
    this.#readAgain()
    for (const [network, requests] of this.#waiting) {
      if (this.#elapsed() >= TURN_MS) return
      // A network with further requests is the last one now.
      this.#waiting.delete(network)
      if (requests.length > 1) this.#waiting.set(network, requests)
      requests.shift()!()
    }
  }
}
