// A service with several workers, and what tests ask of it.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import { createDatabase } from './helper.ts'
import { childrenOf, type Service, startService } from './process.ts'
import type { Teardown } from './scope.ts'

export const METRICS_TOKEN = 'a-token-of-the-tests'

/** Milliseconds until a request fails. */
const TIMEOUT = 3000

interface Options {
  method?: string
  body?: unknown
  headers?: Record<string, string>
  /** The agent that keeps connections; without one, each request has its own. */
  agent?: Agent
}

/** Sends a request. Whichever worker is idle accepts a new connection. */
export async function send ({ url }: Service, path: string, { method = 'GET', body, headers, agent }: Options = {}) {
  const sent = request(url + path, {
    method,
    agent: agent ?? false,
    signal: AbortSignal.timeout(TIMEOUT),
    headers: { ...headers, ...body !== undefined && { 'content-type': 'application/json' } },
  })
  sent.end(body && JSON.stringify(body))
  const [response] = await once(sent, 'response') as [IncomingMessage]
  const content = await text(response)
  const parsed = content.startsWith('{') ? JSON.parse(content) : undefined
  return { status: response.statusCode!, headers: response.headers, text: content, body: parsed }
}

interface Line {
  msg: string
  pid: number
  worker?: number
  reqId?: string
  path?: string
  err?: Error
}

/** The lines of the log so far; each must be whole. */
export function linesOf ({ output }: Service) {
  const lines = output.stdout.split('\n').slice(0, -1).filter(line => !line.startsWith('> ') && line)
  return lines.map(line => JSON.parse(line) as Line)
}

/** An agent for each worker, with a connection to it. Each has sent a request or more for `/clubs`. */
export async function agentOfEach (t: Teardown, service: Service, count = 2) {
  const agents = new Map<number, Agent>()
  while (agents.size < count) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.teardown(() => agent.destroy())
    const reqId = randomUUID()
    await send(service, '/clubs', { agent, headers: { 'x-request-id': reqId } })
    const lineOf = () => linesOf(service).find(line => line.reqId === reqId)
    await until(lineOf)
    const { pid } = lineOf()!
    if (!agents.has(pid)) agents.set(pid, agent)
  }
  return [...agents.values()]
}

/** Waits until it is so. */
export async function until (isTrue: () => unknown) {
  while (!await isTrue()) await sleep(20)
}

/** A service with two workers, all of them ready. */
export async function startWorkers (
  t: Teardown, variables: NodeJS.Dict<string> = {}, options: Parameters<typeof startService>[2] = {}
) {
  const DATABASE_URL = variables.DATA_DIR ? undefined : await createDatabase(t)
  const service = await startService(t, { DATABASE_URL, WORKERS: '2', ...variables }, options)
  await until(() => service.messages().includes('All 2 workers are ready'))
  const { pid } = linesOf(service).find(({ msg }) => msg.startsWith('All 2'))!
  return Object.assign(service, { pid, workers: () => childrenOf(pid) })
}

/** One sample of the metrics. */
export async function sample (service: Service, name: string, agent?: Agent) {
  const metrics = await send(service, '/metrics', { headers: { authorization: `Bearer ${METRICS_TOKEN}` }, agent })
  const line = metrics.text.split('\n').find(line => line.startsWith(`${name} `))
  return Number(line?.slice(name.length))
}

/** Whether `/readyz` says so. */
export const ready = (service: Service) => send(service, '/readyz').then(({ status }) => status === 200, () => false)
