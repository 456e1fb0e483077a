import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import type { Client } from '../lib/http/fair-queue.ts'
import { clientNetwork, isProxyOf } from '../lib/http/client-network.ts'
import { createMeter, Memory, memoryLimit, sumByNetwork } from '../lib/http/memory.ts'
import { overloaded } from './admission.ts'

declare module 'fastify' {
  interface FastifyInstance {
    memory: Memory
    /** Tells whether clients announce most of MAX_HELD_BYTES, and no network more than the network of this client. */
    isFullFor (client: Client): boolean
  }

  interface FastifyContextConfig {
    /** The response is a stream that stays open. */
    isStream?: true
  }
}

/** Share of MAX_HELD_BYTES that clients may announce. Beyond it, bodies are refused before connections are closed. */
const FULL = 3 / 4

/** The longest body that is never refused. */
const SHORT_BYTES = 16 * 1024

/** Interval of measurements. One takes 25 µs. */
const INTERVAL_MS = 50

/** Measures the memory of the process, and closes the connections that hold the most if it becomes short. */
export default fp(async app => {
  const memory = new Memory(memoryLimit())
  const measure = createMeter(memory.mostHeap)
  const isProxy = isProxyOf(app.config)
  /** Long bodies, by their announced lengths, until the responses to them are complete. */
  const bodies = new Set<{ network: string, weight: number }>()
  app.decorate('memory', memory)

  app.server.on('connection', socket => {
    const { remoteAddress = '', remotePort } = socket
    // A connection of a proxy carries requests of different clients, so it begins as a network of its own.
    memory.open(socket, isProxy(remoteAddress, 0) ? `${remoteAddress}:${remotePort}` : clientNetwork(remoteAddress))
  })
  const timer = setInterval(() => memory.enforce(measure()), INTERVAL_MS).unref()
  app.addHook('onClose', async () => clearInterval(timer))

  app.addHook('onRequest', (request, { raw }, done) => {
    raw.once('close', memory.begin(request.socket, request.network))
    const weight = announcedLength(request)
    if (weight > SHORT_BYTES) {
      const body = { network: request.network, weight }
      bodies.add(body)
      raw.once('close', () => bodies.delete(body))
    }
    done()
  })

  app.decorate('isFullFor', ({ network }) => {
    const sums = sumByNetwork(bodies)
    const all = [...sums.values()]
    const isFull = all.reduce((sum, bytes) => sum + bytes, 0) > FULL * app.config.MAX_HELD_BYTES
    return isFull && sums.get(network) === Math.max(...all)
  })

  // After hooks of the route, which may have an error message of their own.
  app.addHook('onRoute', route => {
    if (!route.config?.failure) return
    route.preParsing = [...[route.preParsing ?? []].flat(), (request, _reply, payload, done) => {
      const isLong = announcedLength(request) > SHORT_BYTES
      done(isLong && app.isFullFor(request) ? overloaded() : null, payload)
    }]
  })
}, { name: 'memory', dependencies: ['network'] })

/** Returns the announced length of a body, at most `bodyLimit`. A chunked body counts as `bodyLimit`. */
function announcedLength ({ headers, routeOptions: { bodyLimit } }: FastifyRequest) {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers
  if (encoding !== undefined) return bodyLimit
  return length === undefined ? 0 : Math.min(Number(length), bodyLimit)
}
