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

/** Time after a flood in which the connections of its network take turns, and the time of such a turn. */
const FLOOD_MS = 10_000
const TURN_MS = 50

/**
 * The open connections. Node does not list them.
 *
 * In a turn of the event loop, Node parses 64 KB of each connection: up to 590 pipelined requests, or 11,000 chunks.
 * The service measures no memory and answers no request until the turn ends: 400 connections took 2.6 seconds and
 * 250 MB of heap. So a flood ends the turn, and Node reads other connections in the next turn. All networks that have
 * flooded recently share one place: every 50 ms, Node reads one of their connections.
 */
export class Connections extends Map<Socket, Connection> {
  #floods = new Map<string, number>()
  readonly #paused = new Set<Socket>()
  #timer: NodeJS.Timeout | undefined

  /** Closes a connection that floods, and ends the turn. */
  closeFlood (socket: Socket) {
    if (socket.destroyed) return
    socket.destroy()
    const now = performance.now()
    this.#floods = new Map([...this.#floods].filter(([, time]) => now - time < FLOOD_MS))
    this.#floods.set(this.get(socket)!.network, now)
    for (const other of this.keys()) this.#pause(other)
    setImmediate(() => {
      for (const socket of this.#paused) if (!this.#hasFlooded(socket)) this.#resume(socket)
    })
  }

  override set (socket: Socket, connection: Connection) {
    super.set(socket, connection)
    if (this.#hasFlooded(socket)) this.#pause(socket)
    return this
  }

  override delete (socket: Socket) {
    this.#paused.delete(socket)
    return super.delete(socket)
  }

  #hasFlooded (socket: Socket) {
    return performance.now() - (this.#floods.get(this.get(socket)!.network) ?? -Infinity) < FLOOD_MS
  }

  #pause (socket: Socket) {
    this.#paused.add(socket.pause())
    this.#timer ??= setInterval(() => this.#takeTurn(), TURN_MS).unref()
  }

  #takeTurn () {
    const [socket] = this.#paused
    if (socket) return this.#resume(socket)
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #resume (socket: Socket) {
    this.#paused.delete(socket.resume())
  }
}
