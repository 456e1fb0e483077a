import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { totalmem } from 'node:os'
import { GCProfiler, getHeapStatistics } from 'node:v8'

import { inBatches } from './in-batches.ts'
import type { Connections } from './connections.ts'

/** What a process uses, in bytes. */
export interface Usage {
  /** Heap after the last full garbage collection since the last measurement; `undefined` without a collection. */
  heap?: number | undefined
  /** Heap, and buffers outside it, after this collection. */
  held?: number | undefined
  /** Resident set. */
  resident: number
}

/**
 * Weight of a connection, and of a request without a complete response, in bytes. A connection with nothing but a
 * stream of changes has neither, because LIVE_CLIENTS limits them. Otherwise, 100 streams would weigh more than an
 * export of 300 MB.
 */
const WEIGHT = { connection: 2 * 1024, request: 64 * 1024 }

/**
 * Shares that may be used: of the heap and of the memory after a full garbage collection, and of the memory by the
 * resident set and by a conversion. With a conversion of the largest share, 512 MB are enough for a busy process of
 * 270 MB.
 */
const SHARES = { heap: 0.6, held: 0.5, resident: 0.8, conversion: 0.49 }

/** Memory of a process without uploads, in bytes. While 64 readers load a list, the resident set has 113 MB. */
const REST = 116 * 2 ** 20

/** Share of the memory by which the resident set grows until connections are closed again, if little is held. */
const GROWTH = 0.02

/** Share of the weight of all connections that is closed at once. */
const CLOSED = 0.5

/**
 * If all connections together weigh less, none is closed, because that would free nothing. When each network had this
 * limit, 400 networks with an export each ended a process of 256 MB.
 */
const LEAST = 2 ** 20

/** The smallest of the control group, the machine, and twice the largest heap, as Node.js divides memory. */
export function memoryLimit (constrained = process.constrainedMemory()) {
  return Math.min(constrained > 0 ? constrained : Infinity, totalmem(), 2 * getHeapStatistics().heap_size_limit)
}

/** Returns how many bytes the conversion of a picture may take, so that the resident set stays below its limit. */
export const spareMemory = (limit = memoryLimit()) =>
  Math.min(SHARES.resident * limit - REST, SHARES.conversion * limit)

/**
 * Returns a function that measures what the process uses. It looks at collections only while the heap or the resident
 * set is larger than its limit: during a flood of small chunks, records of 1,000 collections made the resident set grow
 * by 400 MB.
 */
export function createMeter ({ heap, resident }: Memory['most']) {
  const profiler = new GCProfiler()
  return (): Usage => {
    const usage = process.memoryUsage()
    const collections = profiler.stop()?.statistics ?? []
    if (usage.heapUsed > heap || usage.rss > resident) profiler.start()
    const last = collections.findLast(({ gcType }) => gcType === 'MarkSweepCompact')
    const used = last?.afterGC.heapStatistics.usedHeapSize
    return { heap: used, held: used && used + usage.external, resident: usage.rss }
  }
}

/**
 * Keeps a flood from ending the process: of 150 clients that send posts of 1 MB to a process of 256 MB that refuses
 * none of them, it closes 123 connections in eight seconds, and others are served. Closes connections if the process
 * uses too much memory, each time the heaviest one of the network that then holds most. So a network loses none while
 * others hold more. The use of the process decides when connections close. Their sockets decide which: bytes that have
 * arrived since the request began, bytes that the kernel has not accepted, requests without a response, and what is
 * read for them.
 */
export class Memory {
  closed = 0
  /** The heap after a full collection, and the resident set, from which connections are closed. */
  readonly most: { heap: number, resident: number }
  readonly #limit: number
  readonly #connections: Connections
  /**
   * The resident set from which connections are closed if little is held. It grows with each closing, because freed
   * memory stays resident until it is used again: only further growth means that more is needed.
   */
  #accepted: number

  constructor (limit: number, connections: Connections) {
    const heap = SHARES.heap * limit / 2
    this.most = { heap, resident: SHARES.resident * limit }
    this.#limit = limit
    this.#connections = connections
    this.#accepted = this.most.resident
  }

  /** Closes connections if the process uses too much. Call it regularly. */
  enforce ({ heap = 0, held = 0, resident }: Usage) {
    const { most } = this
    const isHeld = resident > most.resident && held > SHARES.held * this.#limit
    const isShort = heap > most.heap || isHeld || resident > this.#accepted
    if (resident > this.#accepted || resident < this.#accepted - 2 * GROWTH * this.#limit) {
      this.#accepted = Math.max(most.resident, resident + GROWTH * this.#limit)
    }
    if (isShort) this.#close()
  }

  #close () {
    const open = [...this.#connections].filter(([socket]) => !socket.destroyed)
    const { streams, bytesFor } = this.#connections
    const connections = open.map(([socket, { network, responses, bytesRead, latest }]) => {
      const waiting = [...responses].filter(response => !streams.has(response))
      const isStream = waiting.length === 0 && responses.size > 0
      const base = (isStream ? 0 : WEIGHT.connection) + socket.bytesRead - bytesRead + socket.writableLength
      const weightOf = (response: ServerResponse) => WEIGHT.request + (bytesFor.get(response) ?? 0)
      const weight = waiting.reduce((sum, response) => sum + weightOf(response), base)
      return { socket, network, latest, weight }
    })
    // Of equal connections, the one with the latest request is closed first.
    connections.sort((one, other) => one.weight - other.weight || one.latest - other.latest)
    /** What each network holds, and with each connection what it would still hold with only this and lighter ones. */
    const held = new Map<string, number>()
    const steps = connections.map(({ socket, network, weight }) => {
      const left = (held.get(network) ?? 0) + weight
      held.set(network, left)
      return { socket, weight, left }
    })
    const total = steps.reduce((total, { weight }) => total + weight, 0)
    if (total < LEAST) return
    const closed: Socket[] = []
    let rest = CLOSED * total
    for (const { socket, weight } of steps.sort((one, other) => other.left - one.left)) {
      if (rest <= 0) break
      rest -= weight
      closed.push(socket)
    }
    this.closed += closed.length
    inBatches(closed, socket => { socket.destroy() })
  }
}
