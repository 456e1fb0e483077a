import type { Socket } from 'node:net'
import { totalmem } from 'node:os'
import { GCProfiler, getHeapStatistics } from 'node:v8'

/** What a process uses, in bytes. */
export interface Usage {
  /** Heap after the last full garbage collection since the last measurement; `undefined` without a collection. */
  heap: number | undefined
  /** Resident set. */
  resident: number
}

/** What is known about a connection. */
interface Connection {
  /** The network of its latest client. Behind a proxy, requests of a connection come from different clients. */
  network: string
  /** Requests without a complete response. */
  requests: number
  /** Value of `socket.bytesRead` when the connection was last without a request. */
  bytesRead: number
}

/** Weight of a connection, and of a request without a complete response, in bytes. */
const WEIGHT = { connection: 8 * 1024, request: 64 * 1024 }

/** Share of the heap that may be used after a full garbage collection, and share of the memory that may be resident. */
const SHARES = { heap: 0.6, resident: 0.8 }

/** Share of the memory by which the resident set grows until connections are closed again. */
const GROWTH = 0.02

/** Share of the weight of all connections that is closed at once. */
const CLOSED = 0.5

/** A network with less weight loses no connection, because that would free nothing. */
const LEAST = 2 ** 20

/** The memory of the control group of the process; otherwise twice the largest heap, as Node.js divides memory. */
export function memoryLimit (constrained = process.constrainedMemory()) {
  return Math.min(constrained > 0 ? constrained : Infinity, totalmem(), 2 * getHeapStatistics().heap_size_limit)
}

/**
 * Returns a function that measures what the process uses. It looks at collections only while the heap is larger than
 * `mostHeap`: during a flood of small chunks, records of 1,000 collections made the resident set grow by 400 MB.
 */
export function createMeter (mostHeap: number) {
  const profiler = new GCProfiler()
  return (): Usage => {
    const collections = profiler.stop()?.statistics ?? []
    if (getHeapStatistics().used_heap_size > mostHeap) profiler.start()
    const last = collections.findLast(({ gcType }) => gcType === 'MarkSweepCompact')
    return { heap: last?.afterGC.heapStatistics.usedHeapSize, resident: process.memoryUsage.rss() }
  }
}

/**
 * Closes connections if the process uses too much memory: of the network that holds most, heaviest first. What decides
 * that connections close is what the process uses. Whose connections close is decided by what their sockets tell: bytes
 * that have arrived since the request began, bytes that the kernel has not accepted, and requests without a response.
 */
export class Memory {
  closed = 0
  readonly #limit: number
  /** The heap after a full collection from which connections are closed. */
  readonly mostHeap: number
  readonly #connections = new Map<Socket, Connection>()
  /**
   * The resident set from which connections are closed. It grows with each closing, because freed memory stays resident
   * until it is used again: only further growth means that more is needed.
   */
  #accepted: number

  constructor (limit: number) {
    this.#limit = limit
    this.mostHeap = SHARES.heap * Math.min(limit / 2, getHeapStatistics().heap_size_limit)
    this.#accepted = SHARES.resident * limit
  }

  /** Knows a connection until it closes. */
  open (socket: Socket, network: string) {
    const connection: Connection = { network, requests: 0, bytesRead: 0 }
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#connections.delete(socket))
    return connection
  }

  /** Call when a request begins. Call the returned function when its response is complete or its connection closes. */
  begin (socket: Socket, network: string) {
    // A request of `inject` has no connection.
    const connection = this.#connections.get(socket) ?? this.open(socket, network)
    connection.network = network
    connection.requests++
    return () => {
      connection.requests--
      if (connection.requests === 0) connection.bytesRead = socket.bytesRead
    }
  }

  /** Closes connections if the process uses too much. Call it regularly. */
  enforce ({ heap = 0, resident }: Usage) {
    const most = SHARES.resident * this.#limit
    const isShort = heap > this.mostHeap || resident > this.#accepted
    if (resident > this.#accepted || resident < this.#accepted - 2 * GROWTH * this.#limit) {
      this.#accepted = Math.max(most, resident + GROWTH * this.#limit)
    }
    if (isShort) this.#close()
  }

  #close () {
    const connections = Array.from(this.#connections, ([socket, { network, requests, bytesRead }]) => ({
      socket,
      network,
      weight: WEIGHT.connection + WEIGHT.request * requests + socket.bytesRead - bytesRead + socket.writableLength,
    // Of equal connections, the newest is closed first.
    })).reverse().sort((one, other) => other.weight - one.weight)
    const sums = sumByNetwork(connections)
    let rest = CLOSED * [...sums.values()].reduce((sum, weight) => sum + weight, 0)
    for (const [network, sum] of [...sums].sort(([, one], [, other]) => other - one)) {
      if (sum < LEAST) return
      for (const { socket, weight } of connections.filter(connection => connection.network === network)) {
        if (rest <= 0) return
        rest -= weight
        this.closed++
        this.#connections.delete(socket)
        socket.destroy()
      }
    }
  }
}

/** Sums up weights by network. */
export function sumByNetwork (items: Iterable<{ readonly network: string, readonly weight: number }>) {
  const sums = new Map<string, number>()
  for (const { network, weight } of items) sums.set(network, (sums.get(network) ?? 0) + weight)
  return sums
}
