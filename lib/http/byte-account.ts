import type { Socket } from 'node:net'

/** Bytes that several requests may hold together, such as a body that is read once and sent to many: counted once. */
export interface SharedBytes {
  bytes: number
  /** How many requests hold them. */
  holders: number
}

/** The bytes that one request holds. */
export interface Holding {
  readonly connection: Connection
  /** The network of its client. Only asked for when some have to go. */
  network (): string
  /** Those of its body, and of a response that it shares with no other. */
  own: number
  shared: SharedBytes | undefined
  /** Whether its handler still runs, which holds the body when the connection is gone, too. */
  running: boolean
  /** Whether its response is taken, or its connection is gone. What its handler holds is freed when that ends. */
  leaving: boolean
}

/** A connection with requests that hold something. */
interface Connection {
  readonly socket: Socket
  readonly holdings: Holding[]
}

/** The connections of a network, and the bytes that they hold. */
interface Network {
  bytes: number
  connections: { connection: Connection, bytes: number, moved: number }[]
}

/** The part of the limit that may be in use after connections were closed: so they are looked through less often. */
const ROOM = 0.9

/** Past this part of the limit operations are refused: handlers hold the bytes, so closing connections frees none. */
const LAST_RESORT = 1.25

/**
 * Counts the bytes that clients make the process hold: bodies that arrive, bodies that are read from the database,
 * responses that the kernel has not taken. Past the limit it closes connections: of the network that holds the most,
 * those that hold the most; of equals, those that have moved the least. Others are served.
 */
export class ByteAccount {
  readonly #limit: number
  readonly #connections = new Map<Socket, Connection>()
  #bytes = 0
  /** Those of handlers whose connection is gone: freed when the handler ends. */
  #leaving = 0
  #closed = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** The bytes that are held. */
  get bytes () { return this.#bytes }

  /** How many connections were closed so far. */
  get closed () { return this.#closed }

  /** Whether too much is on its way out for further operations. */
  get isFull () { return this.#bytes > LAST_RESORT * this.#limit }

  /** Begins to count what a request holds, until its response is taken or its connection is gone. */
  begin (socket: Socket, network: () => string): Holding {
    let connection = this.#connections.get(socket)
    if (!connection) {
      connection = { socket, holdings: [] }
      this.#connections.set(socket, connection)
      const opened = connection
      socket.once('close', () => this.#drop(opened))
    }
    const holding = { connection, network, own: 0, shared: undefined, running: false, leaving: false }
    connection.holdings.push(holding)
    return holding
  }

  /** Adds bytes to what a request holds for itself. */
  hold (holding: Holding, bytes: number) {
    if (holding.leaving) return
    holding.own += bytes
    this.#add(bytes)
  }

  /** Has a request hold these shared bytes, and no others. */
  share (holding: Holding, shared: SharedBytes) {
    if (holding.shared === shared || holding.leaving) return
    shared.holders++
    if (shared.holders === 1) this.#bytes += shared.bytes
    this.#unshare(holding)
    holding.shared = shared
    this.#makeRoom()
  }

  /** Adds bytes to shared ones. */
  grow (shared: SharedBytes, bytes: number) {
    shared.bytes += bytes
    if (shared.holders > 0) this.#add(bytes)
  }

  /** The body is there, so the handler begins. */
  start (holding: Holding) {
    holding.running = !holding.leaving
  }

  /** The handler has ended. */
  settle (holding: Holding) {
    holding.running = false
    if (holding.leaving) this.release(holding)
  }

  /** The response is taken, or its connection is gone. */
  release (holding: Holding) {
    const { holdings } = holding.connection
    const index = holdings.indexOf(holding)
    if (index >= 0) holdings.splice(index, 1)
    this.#unshare(holding)
    this.#bytes -= holding.own
    if (holding.leaving) this.#leaving -= holding.own
    holding.own = 0
    // A read goes on for a moment when its operation has timed out.
    holding.leaving = true
  }

  #add (bytes: number) {
    this.#bytes += bytes
    this.#makeRoom()
  }

  #unshare (holding: Holding) {
    const { shared } = holding
    if (!shared) return
    holding.shared = undefined
    shared.holders--
    if (shared.holders === 0) this.#bytes -= shared.bytes
  }

  /** Forgets a connection. The body of a request counts until its handler ends; a read stops when no client waits. */
  #drop ({ socket, holdings }: Connection) {
    this.#connections.delete(socket)
    for (const holding of [...holdings]) {
      if (holding.leaving) continue
      if (holding.running) this.#leaving += holding.own
      else this.release(holding)
      this.#unshare(holding)
      holding.leaving = true
    }
  }

  #makeRoom () {
    if (this.#bytes - this.#leaving <= this.#limit) return
    for (let going = this.#heaviestNetwork(); going.length > 0; going = this.#heaviestNetwork()) {
      for (const { connection } of going) {
        if (this.#bytes - this.#leaving <= ROOM * this.#limit) return
        this.#closed++
        connection.socket.destroy()
        this.#drop(connection)
      }
    }
  }

  /** The connections of the network that holds the most, in the order in which they go. */
  #heaviestNetwork () {
    const networks = new Map<string, Network>()
    let heaviest: Network = { bytes: 0, connections: [] }
    for (const connection of this.#connections.values()) {
      const bytes = bytesOf(connection)
      if (bytes === 0) continue
      // Behind a proxy, the clients of a connection differ.
      const name = connection.holdings.at(-1)!.network()
      const network = networks.get(name) ?? { bytes: 0, connections: [] }
      networks.set(name, network)
      network.bytes += bytes
      network.connections.push({ connection, bytes, moved: movedBy(connection) })
      if (network.bytes > heaviest.bytes) heaviest = network
    }
    return heaviest.connections.sort((one, other) => other.bytes - one.bytes || one.moved - other.moved)
  }
}

/** The bytes that a connection holds; of those that it shares, its part. */
function bytesOf ({ holdings }: Connection) {
  return holdings.reduce((sum, { own, shared }) => sum + own + (shared ? shared.bytes / shared.holders : 0), 0)
}

/** The bytes that a connection has sent and taken. */
const movedBy = ({ socket }: Connection) => socket.bytesRead + socket.bytesWritten - socket.writableLength
