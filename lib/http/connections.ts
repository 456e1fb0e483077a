import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection of a client. */
export interface Connection {
  /** The network of its latest client. Behind a proxy, requests of a connection come from different clients. */
  network: string
  /** Responses that are not complete. */
  readonly responses: Set<ServerResponse>
  /** Value of `socket.bytesRead` when the connection was last without a request. */
  bytesRead: number
  /** The time of its last request, or of its beginning, in milliseconds of `performance.now()`. */
  readAt: number
}

/** Time after the last flood in which new connections of its network are closed. A flood takes up to 40 ms. */
const FLOOD_MS = 100

/** Longest time for which a turn of the event loop reads requests. 64 readers take up to 10 ms. */
const READ_MS = 20

/** The open connections. Node does not list them. */
export class Connections extends Map<Socket, Connection> {
  /** Networks that have just flooded, with the timer that forgets them. */
  readonly #flooding = new Map<string, NodeJS.Timeout>()
  /** When this turn of the event loop read its first request. */
  #begun: number | undefined

  /** Adds a new connection, or closes it if its network has just flooded. */
  override set (socket: Socket, connection: Connection) {
    if (this.#flooding.has(connection.network)) socket.destroy()
    return super.set(socket, connection)
  }

  /**
   * Counts a request, and ends a turn of the event loop that has read requests for too long. In a turn, Node reads up
   * to 2 MB of each connection, and accepts a single new one. While 400 clients sent long tokens that are not ours, a
   * turn took more than a second, and new clients waited for more than 20 seconds.
   */
  countRequest (connection: Connection) {
    const now = performance.now()
    connection.readAt = now
    if (this.#begun === undefined) setImmediate(() => { this.#begun = undefined })
    this.#begun ??= now
    if (now - this.#begun <= READ_MS) return
    this.#begun = now
    // When Node has parsed the request, it resumes its connection.
    process.nextTick(() => this.#endTurn())
  }

  /**
   * Closes a connection that floods, and ends the turn of the event loop. In a turn, Node parses 64 KB of each
   * connection: up to 590 pipelined requests, or 11,000 chunks. Only then does it answer, and measure memory: 400
   * floods in a turn took 2.6 seconds and 250 MB of heap. The other connections are read in the next turn.
   */
  closeFlood (socket: Socket) {
    if (socket.destroyed) return
    socket.destroy()
    const { network } = this.get(socket)!
    clearTimeout(this.#flooding.get(network))
    this.#flooding.set(network, setTimeout(() => this.#flooding.delete(network), FLOOD_MS).unref())
    this.#endTurn()
  }

  /** Reads all connections in the next turn, first those of the network whose last request is the oldest. */
  #endTurn () {
    // Node itself pauses connections while a body or a response waits. These stay as they are. It pauses none of the
    // others until the next turn, because it parses nothing.
    const others = [...this].filter(([socket]) => !socket.isPaused())
    for (const [socket] of others) socket.pause()
    const times = new Map<string, number>()
    for (const { network, readAt } of this.values()) times.set(network, Math.max(readAt, times.get(network) ?? 0))
    const timeOf = ({ network }: Connection) => times.get(network)!
    others.sort(([, one], [, other]) => timeOf(one) - timeOf(other) || one.readAt - other.readAt)
    // The kernel reports them in this order.
    setImmediate(() => others.forEach(([socket]) => socket.resume()))
  }
}
