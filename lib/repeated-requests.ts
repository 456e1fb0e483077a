import type { IncomingMessage, OutgoingHttpHeaders, RequestListener, ServerResponse } from 'node:http'

import fresh from 'fresh'
import { LRUCache } from 'lru-cache'

import { type Header, HttpMessage } from './http-message.ts'
import { type DatabaseState, isSameState } from './kept-answers.ts'

declare module 'node:http' {
  interface IncomingMessage {
    /** When it came, in milliseconds of `performance.now()`, if it had to wait before it is routed. */
    arrived?: number
  }
}

/** A whole response, and the state of the database in which it is the one to send. */
export interface KeptResponse {
  headers: OutgoingHttpHeaders & { etag: string }
  bytes: Buffer
  state: DatabaseState
  /** The pattern of its route, by which is counted how often it is sent. */
  route: string
}

/** How often responses were repeated whole, and how often it was only said that they have not changed. */
export interface RepeatCounts {
  whole: number
  notModified: number
}

/** One that is kept: the response itself, and one that only says that it has not changed. */
interface PreparedResponse extends KeptResponse {
  whole: HttpMessage
  notModified: HttpMessage
  counts: RepeatCounts
}

/** A request that waits for the state of the database, and what was kept for it when it arrived. */
interface Arrival {
  key: string
  known: PreparedResponse
  request: IncomingMessage
  response: ServerResponse
  next: RequestListener
  /** When, in milliseconds of `performance.now()`. */
  arrived: number
}

/** Those who wait for the same promise of a state: one handler of it for all takes less time than one for each. */
interface Group {
  state: Promise<DatabaseState>
  arrivals: Arrival[]
}

/** The headers that tell of the body. */
const OF_BODY = ['content-type', 'content-length', 'content-encoding']

/** What a response takes besides its address and its bytes, roughly: above all its headers. */
const OVERHEAD = 2000

/** How often its bytes a response takes: as they are, and with the headers before them. */
const FORMS = 2

const NO_BODY = Buffer.alloc(0)

/**
 * Answers a request that came before in the same words, before it is routed: with the very response that was sent then,
 * if the state of the database is still the same (see lib/kept-answers.ts). Everything else goes the ordinary way. A
 * client that takes nothing of its response is hung up on after so many seconds.
 */
export function repeatResponses (readState: () => Promise<DatabaseState>, maxBytes: number, idleTimeout: number) {
  const kept = new LRUCache<string, PreparedResponse>({
    maxSize: maxBytes,
    sizeCalculation: ({ bytes }, key) => OVERHEAD + key.length + FORMS * bytes.length,
  })
  /** Of requests that went the ordinary way in some state: the response, for all who ask the same. */
  const renewals = new Map<string, Promise<PreparedResponse | undefined>>()
  const renewed = new WeakMap<IncomingMessage, (response: PreparedResponse) => void>()
  const states = new WeakMap<IncomingMessage, DatabaseState>()
  /** Who waits for the last state that was asked for. */
  let waiting: Group | undefined
  /** By the pattern of the route. */
  const counts = new Map<string, RepeatCounts>()

  return { keep, handle, stateAt, counts, bytes: () => kept.calculatedSize }

  /** The state of the database after the request arrived, where it was asked for. */
  function stateAt (request: IncomingMessage) {
    return states.get(request)
  }

  /** Keeps the response, of status 200, to a request like this. */
  function keep (request: IncomingMessage, response: KeptResponse) {
    const { route } = response
    if (!counts.has(route)) counts.set(route, { whole: 0, notModified: 0 })
    const prepared = prepare(response, counts.get(route)!, idleTimeout)
    kept.set(keyOf(request), prepared)
    renewed.get(request)?.(prepared)
  }

  function handle (request: IncomingMessage, response: ServerResponse, next: RequestListener) {
    const key = keyOf(request)
    const known = request.method === 'GET' && kept.get(key)
    if (!known) return next(request, response)
    const arrived = performance.now()
    const state = readState()
    if (state !== waiting?.state) {
      const group: Group = waiting = { state, arrivals: [] }
      state.then(state => end(group, arrival => answer(arrival, state)), () => end(group, route))
    }
    waiting.arrivals.push({ key, known, request, response, next, arrived })
  }

  /** Nobody joins the group any more: the same promise, told already, is told anew to whoever is given it later. */
  function end (group: Group, act: (arrival: Arrival) => void) {
    if (waiting === group) waiting = undefined
    for (const arrival of group.arrivals) act(arrival)
  }

  function answer (arrival: Arrival, state: DatabaseState) {
    const { key, request, response } = arrival
    // What was kept when the request arrived is mostly still right; else there may be another by now.
    const known = isSameState(arrival.known.state, state) ? arrival.known : kept.get(key)
    if (known && isSameState(known.state, state)) return send(request, response, known)
    states.set(request, state)
    if (state === null) return route(arrival)

    // Of those who find the same change, one goes the ordinary way. Its read begins in this state or a later one, and
    // whoever arrives while it is the last state known can take its response as well.
    const renewal = renewals.get(state + key)
    if (!renewal) return renew(state + key, arrival)
    renewal.then(known => known ? send(request, response, known) : route(arrival))
  }

  function renew (name: string, arrival: Arrival) {
    renewals.set(name, new Promise(resolve => {
      renewed.set(arrival.request, resolve)
      arrival.response.once('close', () => {
        renewals.delete(name)
        resolve(undefined)
      })
    }))
    route(arrival)
  }
}

function route ({ request, response, next, arrived }: Arrival) {
  request.arrived = arrived
  next(request, response)
}

function prepare (response: KeptResponse, counts: RepeatCounts, idleTimeout: number): PreparedResponse {
  const headers = Object.entries(response.headers).map(([name, value]): Header => [name, String(value)])
  const others = headers.filter(([name]) => !OF_BODY.includes(name))
  return {
    ...response,
    whole: new HttpMessage(200, headers, response.bytes, idleTimeout),
    notModified: new HttpMessage(304, others, NO_BODY, idleTimeout),
    counts,
  }
}

function send (request: IncomingMessage, response: ServerResponse, known: PreparedResponse) {
  const answer = fresh(request.headers, known.headers) ? 'notModified' : 'whole'
  known.counts[answer]++
  known[answer].send(response)
}

/**
 * The address and the two request headers that a response may depend on, which is what its `Vary` says. None of them
 * has a line break.
 */
function keyOf ({ url, headers: { origin = '', 'accept-encoding': coding = '' } }: IncomingMessage) {
  return `${url}\n${origin}\n${coding}`
}
