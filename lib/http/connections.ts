import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import { sumByNetwork } from './fair-queue.ts'

/** A connection of a client. */
export interface Connection {
  /** The network of its latest client. Behind a proxy, requests of a connection come from different clients. */
  network: string
  /** Whether it belongs to a proxy, which sends requests of many clients over it. */
  readonly isShared: boolean
  /** Responses that are not complete. */
  readonly responses: Set<ServerResponse>
  /** The response to its latest request, until both are complete. */
  last?: ServerResponse | undefined
  /** Number of its latest request or part of one, or of the latest one of all when it opened. */
  latest: number
  /** Value of `socket.bytesRead` when the connection was last without a request. */
  bytesRead: number
  /** Value of `socket.bytesRead` when it was counted last. */
  counted: number
  /** The turn of the event loop in which it was counted last. */
  turn: number
  /** Whether the service closed it because it flooded. */
  hasFlooded: boolean
}

/**
 * Bytes of requests in a turn of the event loop after which other connections are read in the next one. In memory, a
 * request can be seven times as long.
 */
const TURN_BYTES = 2 ** 21

/**
 * Time of requests in a turn of the event loop after which other connections are read in the next one. With 20 ms, half
 * of the requests of others took 170 ms instead of 75, alongside 134 networks that pipeline long headers. With
 * 5 ms, 400 busy connections get as many responses as with 20, and 1,000 get 5 % fewer.
 */
const TURN_MS = 5

/**
 * Networks that flooded are not read for this many times the time that the turn of a flood took, which is 2 to 20 ms.
 * Their floods use at most a fifth of the time of the event loop. Alongside 400 networks that flooded, a new client of
 * another network waited for 0.01 to 0.6 seconds with these pauses, and for five seconds without them.
 */
const PAUSE = 4

/** Time for which it is known that a network flooded. */
const KNOWN_MS = 60_000

/**
 * Time for which a network is read last after it ended a turn. With a minute, 517 of 1,500 networks that read a list
 * without end waited for 3 to 10 seconds, because those that had not ended a turn came first. Now, 1.1 is the longest.
 */
const LAST_MS = 500

/**
 * Maximum number of new connections that wait because their networks flooded. Without it, 800 clients that closed and
 * opened connections ended a process of 256 MB.
 */
const HELD = 128

/**
 * The open connections, which Node does not list.
 *
 * Keeps turns of the event loop short. In a turn, Node would read up to 2 MB of each connection, begin all requests in
 * them, and accept a single new connection. Alongside 400 clients that send 114 KB for each request, a turn took
 * 200 ms, half of the requests of others took more than a second, and new clients waited for 30 seconds.
 */
export class Connections extends Map<Socket, Connection> {
  /** Responses that are streams of changes, which hold little and do not end by themselves. */
  readonly streams = new WeakSet<ServerResponse>()
  /** Bytes that were read for a response. */
  readonly bytesFor = new WeakMap<ServerResponse, number>()
  /** Connections that are not read. */
  readonly #paused = new Set<Socket>()
  /** Connections without a request that came during a pause, of networks that flooded, the newest last. */
  readonly #held = new Map<Socket, Connection>()
  /** Networks that flooded, with the times of their last floods. */
  readonly #flooded = new Map<string, number>()
  /** Networks whose requests or floods recently ended a turn, with the times of their last ones. */
  readonly #ended = new Map<string, number>()
  /** The connection whose request began last in this turn. */
  #current?: Connection | undefined
  /** Runs after a flood while networks that flooded are not read. */
  #pause?: NodeJS.Timeout | undefined
  /** Number of requests and parts of requests. */
  #requests = 0
  /** Number of turns with requests. */
  #turns = 0
  /** Ends this turn, and reads connections again. */
  #end?: NodeJS.Immediate | undefined
  /**
   * When the first request of the turn began. Before it, the service reads connections again, which may take longer
   * than TURN_MS. If that counted, a turn would have one request: alongside 1,500 busy networks, others waited for
   * 12 seconds.
   */
  #began?: number | undefined
  #bytes = 0
  /**
   * How long it took to stop reading. Reading again takes as long, and a turn takes at least as long as both: with
   * 8,000 idle connections, half of the requests of others took 250 to 450 ms instead of 28, alongside 100 clients with
   * long headers.
   */
  #stopMs = 0
  #hasStopped = false
  #hasFlood = false

  /** Adds a new connection until it closes. */
  add (socket: Socket, network: string, isShared: boolean) {
    const connection: Connection = {
      network,
      isShared,
      responses: new Set(),
      latest: this.#requests,
      bytesRead: 0,
      counted: 0,
      turn: -1,
      hasFlooded: false,
    }
    this.set(socket, connection)
    socket.once('close', () => {
      this.delete(socket)
      this.#paused.delete(socket)
      this.#held.delete(socket)
    })
    // Node resumes a connection to read a body, and after a request. It begins to read at this event, even if the
    // connection has been paused in the meantime.
    socket.on('resume', () => { if (this.#paused.has(socket)) socket.pause().emit('pause') })
    // It is read in the next turn, after the others. Otherwise, each turn could begin with the flood of a new one.
    this.#stopReading([socket])
    if (this.#mustPause(socket)) this.#holdNew(socket, connection)
    return connection
  }

  /** Counts a request or a part of one. Returns its connection. In a long turn, others are read in the next one. */
  count (socket: Socket) {
    const connection = this.get(socket)!
    const now = performance.now()
    connection.latest = ++this.#requests
    this.#held.delete(socket)
    this.#planEnd()
    this.#began ??= now
    this.#bytes += socket.bytesRead - connection.counted
    connection.counted = socket.bytesRead
    connection.turn = this.#turns
    const most = Math.max(TURN_MS, 2 * this.#stopMs)
    const isLong = this.#bytes > TURN_BYTES || now - this.#began > most
    if (isLong && !this.#hasStopped) {
      remember(this.#ended, (this.#current ?? connection).network, now, LAST_MS)
      this.#stopReading(this.keys())
      this.#stopMs = performance.now() - now
    }
    this.#hasStopped = isLong
    this.#current = connection
    return connection
  }

  /**
   * Closes a connection that floods, and ends the turn. Node parses 64 KB of a connection at once: up to 590
   * pipelined requests, or 11,000 chunks. The service responds and measures memory only afterwards: 400 floods in a
   * turn took 2.6 seconds and 250 MB of heap. The service reads the other connections in the next turn, but connections
   * of networks that flooded only after a pause.
   */
  closeFlood (socket: Socket) {
    const connection = this.get(socket)
    if (!connection || connection.hasFlooded) return
    connection.hasFlooded = true
    socket.destroy()
    const now = performance.now()
    remember(this.#flooded, connection.network, now, KNOWN_MS)
    remember(this.#ended, connection.network, now, LAST_MS)
    this.#began ??= now
    this.#hasFlood = true
    this.#stopReading(this.keys())
  }

  /** Holds a new connection. Of too many, closes the newest one of the network with the most. */
  #holdNew (socket: Socket, connection: Connection) {
    this.#held.set(socket, connection)
    if (this.#held.size <= HELD) return
    const [most] = sumByNetwork(this.#held.values())[0]!
    const [newest] = [...this.#held].findLast(([, { network }]) => network === most)!
    this.#held.delete(newest)
    newest.destroy()
  }

  #planEnd () {
    this.#end ??= setImmediate(() => this.#endTurn())
  }

  #stopReading (sockets: Iterable<Socket>) {
    this.#planEnd()
    for (const socket of sockets) {
      // Node itself pauses connections while a body or a response waits. These stay as they are.
      if (!this.#paused.delete(socket) && socket.isPaused()) continue
      socket.pause()
      this.#paused.add(socket)
    }
  }

  #endTurn () {
    const turn = this.#turns++
    if (this.#hasFlood) {
      const took = performance.now() - this.#began!
      this.#pause ??= setTimeout(() => this.#endPause(), PAUSE * took).unref()
    }
    this.#end = this.#began = this.#current = undefined
    this.#bytes = 0
    this.#hasStopped = this.#hasFlood = false
    const sockets = this.#inOrder().filter(socket => !this.#mustPause(socket))
    // In the next turn, the kernel would list the connections of this turn before all others. So these skip the next
    // turn. Otherwise, the service read the same 37 of 400 connections in each turn, and never the others.
    const others = sockets.filter(socket => this.get(socket)!.turn !== turn)
    this.#readAgain(others)
    if (others.length < sockets.length) this.#planEnd()
  }

  #endPause () {
    this.#pause = undefined
    this.#readAgain(this.#inOrder())
  }

  /**
   * Returns the connections that are not read, in the order in which they are read again. The network that ended a turn
   * most recently comes last. Otherwise, a hundred connections of a network that each took 11 ms delayed a request of
   * another network by 0.8 seconds. In each network, the connection whose latest request is oldest comes first.
   * Otherwise, new clients come after all others, and waited for four seconds instead of one alongside 400 busy
   * connections.
   */
  #inOrder () {
    const paused = [...this.#paused].map(socket => {
      const { network, latest } = this.get(socket)!
      return { socket, latest, ended: this.#ended.get(network) ?? 0 }
    })
    paused.sort((one, other) => one.ended - other.ended || one.latest - other.latest)
    return paused.map(({ socket }) => socket)
  }

  #readAgain (sockets: Socket[]) {
    for (const socket of sockets) {
      this.#paused.delete(socket)
      socket.resume()
    }
  }

  /** Tells whether a connection must not be read now because its network flooded. */
  #mustPause (socket: Socket) {
    const { network, isShared } = this.get(socket)!
    return this.#pause !== undefined && !isShared && this.#flooded.has(network)
  }
}

/** Adds a network with the time of an event, and forgets networks without one for so many milliseconds. */
function remember (networks: Map<string, number>, network: string, now: number, milliseconds: number) {
  networks.set(network, now)
  for (const [other, time] of networks) if (now - time > milliseconds) networks.delete(other)
}
