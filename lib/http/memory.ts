import type { Socket } from 'node:net'
import { totalmem } from 'node:os'
import { GCProfiler, getHeapStatistics } from 'node:v8'

import type { Client } from '../fair-queue.ts'

/** What a process uses, in bytes. */
export interface Usage {
  /** Heap after the last full garbage collection since the last measurement; `undefined` without a collection. */
  heap: number | undefined
  /** Resident set. */
  resident: number
}

/** What is known about a connection. */
interface Connection {
  /** Its latest client. Behind a proxy, requests of a connection come from different clients. */
  client: Client
  /** Requests without a complete response. */
  requests: number
  /** Bytes of bodies that these requests announce. */
  announced: number
  /** Value of `socket.bytesRead` when the connection was last without a request. */
  bytesRead: number
}

/** A connection and its weight, by which connections are compared. */
interface Weighed {
  socket: Socket
  network: string
  weight: number
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
  open (socket: Socket, client: Client) {
    const connection: Connection = { client, requests: 0, announced: 0, bytesRead: 0 }
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#connections.delete(socket))
    return connection
  }

  /**
   * Call when a request begins that announces a body of so many bytes. Call `forgetBody` when it has a response, and
   * `end` when the response is complete or the connection closes.
   */
  begin (socket: Socket, client: Client, announced: number) {
    // A request of `inject` has no connection.
    const connection = this.#connections.get(socket) ?? this.open(socket, client)
    connection.client = client
    connection.requests++
    connection.announced += announced
    const forgetBody = () => {
      connection.announced -= announced
      announced = 0
    }
    const end = () => {
      forgetBody()
      connection.requests--
      if (connection.requests === 0) connection.bytesRead = socket.bytesRead
    }
    return { forgetBody, end }
  }

  /** Tells whether clients announce more than `limit`, and no network more than the network of this client. */
  isFullFor ({ network }: Client, limit: number) {
    const sums = sumBy([...this.#connections.values()], connection => connection.announced)
    const all = [...sums.values()]
    return all.reduce((sum, bytes) => sum + bytes, 0) > limit && sums.get(network) === Math.max(...all)
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
    const connections = Array.from(this.#connections, ([socket, { client, requests, bytesRead }]): Weighed => ({
      socket,
      network: client.network,
      weight: WEIGHT.connection + WEIGHT.request * requests + socket.bytesRead - bytesRead + socket.writableLength,
    // Of equal connections, the newest is closed first.
    })).reverse().sort((one, other) => other.weight - one.weight)
    const sums = sumBy(connections.map(({ network, weight }) => ({ client: { network }, weight })), one => one.weight)
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

function sumBy<Item extends { client: Client }> (items: Item[], bytesOf: (item: Item) => number) {
  const sums = new Map<string, number>()
  for (const item of items) {
    const { network } = item.client
    sums.set(network, (sums.get(network) ?? 0) + bytesOf(item))
  }
  return sums
}
