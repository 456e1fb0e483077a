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
}

/** Time after the last flood in which new connections of its network are closed. A flood takes up to 40 ms. */
const FLOOD_MS = 100

/** The open connections, the oldest first. Node does not list them. */
export class Connections extends Map<Socket, Connection> {
  /** Networks that have just flooded, with the timer that forgets them. */
  readonly #flooding = new Map<string, NodeJS.Timeout>()

  /** Adds a new connection, or closes it if its network has just flooded. */
  override set (socket: Socket, connection: Connection) {
    if (this.#flooding.has(connection.network)) socket.destroy()
    return super.set(socket, connection)
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
    // Node itself pauses connections while a body or a response waits. These stay as they are. It pauses none of the
    // others until the next turn, because it parses nothing.
    const others = [...this.keys()].filter(other => !other.isPaused())
    for (const other of others) other.pause()
    setImmediate(() => others.forEach(other => other.resume()))
  }
}
