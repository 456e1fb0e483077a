import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

import { overloaded } from '../lib/http/errors.ts'
import { sumByNetwork } from '../lib/http/fair-queue.ts'
import { createMeter, Memory, memoryLimit } from '../lib/http/memory.ts'

declare module 'fastify' {
  interface FastifyInstance {
    memory: Memory
  }
}

/** Share of MAX_HELD_BYTES that bodies may announce. Beyond it, long ones are refused before connections are closed. */
const FULL = 3 / 4

/** Interval of measurements. One takes 25 µs. */
const INTERVAL_MS = 50

/**
 * Measures the memory of the process, and closes the connections that hold the most if it becomes short. While clients
 * announce most of MAX_HELD_BYTES, refuses long bodies of the network that announces most.
 */
export default fp(async app => {
  const memory = new Memory(memoryLimit(), app.connections)
  const measure = createMeter(memory.most)
  /** The longest body that is never refused: the limit of routes that do not take long texts. */
  const shortBytes = app.initialConfig.bodyLimit!
  /** Requests with long bodies, by the announced lengths. A refused body may never arrive, so it no longer counts. */
  const bodies = new Map<FastifyRequest, { network: string, weight: number }>()
  app.decorate('memory', memory)

  const timer = setInterval(() => memory.enforce(measure()), INTERVAL_MS).unref()
  app.addHook('onClose', async () => clearInterval(timer))

  app.addHook('onRequest', (request, { raw }, done) => {
    const { network } = request
    const weight = announcedLength(request)
    if (weight <= shortBytes) return done()
    bodies.set(request, { network, weight })
    raw.once('close', () => bodies.delete(request))
    const networks = sumByNetwork(bodies.values())
    const isFull = networks.reduce((total, [, sum]) => total + sum, 0) > FULL * app.config.MAX_HELD_BYTES
    isFull && networks[0]![0] === network ? done(overloaded()) : done()
  })
  app.addHook('onSend', (request, _reply, _payload, done) => {
    bodies.delete(request)
    done()
  })
  // After CORS, so that apps can read the refusal.
}, { name: 'memory', dependencies: ['admission', 'cors', 'network'] })

/** Returns the announced length of a body, at most `bodyLimit`. A chunked body counts as `bodyLimit`. */
function announcedLength ({ headers, routeOptions: { bodyLimit } }: FastifyRequest) {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers
  if (encoding !== undefined) return bodyLimit
  return length === undefined ? 0 : Math.min(Number(length), bodyLimit)
}
