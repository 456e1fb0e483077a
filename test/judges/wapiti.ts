// A scanner for web applications: https://wapiti-scanner.github.io
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { serve } from '../provider.ts'
import { findVersion, type Judge, run, type Setting } from './judge.ts'
import { type Operation, startOperations } from './target.ts'

/** Its modules for pages and parameters that send requests to the service only. */
const PAGE_MODULES = ['csp', 'http_headers']
const MODULES = [
  'blindsql', 'cookieflags', 'crlf', 'exec', 'file', 'permanentxss', 'redirect', 'shellshock', 'sql', 'xss',
]

/** The delay of an injected sleep, in seconds: DATABASE_TIMEOUT ends one of five. */
const TIMEOUT = '3'

/** False positives. */
const ACCEPTED = [
  { finding: /^X-Frame-Options is not set/, reason: 'frame-ancestors of the Content-Security-Policy takes its place' },
  { finding: /^X-XSS-Protection is not set/, reason: 'browsers have no such filter any more, and it had holes' },
  { finding: /^HttpOnly flag .* oauth_state_nonce/, reason: 'the interface has it so, and it opens no session' },
  { finding: /^The server responded with a 500/, reason: 'the interface has a 500 for what is not there' },
]

/** Attacks every parameter of every operation, and the docs page. */
export const wapiti: Judge = {
  program: 'wapiti',
  install: 'apt-get install wapiti',
  version: async setting => findVersion((await run(setting, 'wapiti', ['--version'])).output),

  async run (setting) {
    const { url, operations } = await startOperations(setting.scope, setting.directory)
    const { origin } = await serve(setting.scope, (request, response) => forward(url, operations, request, response))
    const findings = [
      ...await attack(setting, `${url}/docs/`, PAGE_MODULES),
      ...await attack(setting, `${origin}/`, MODULES),
    ]
    return {
      subject: `the docs page (${PAGE_MODULES.join(', ')}) and ${operations.length} operations (${MODULES.join(', ')})`,
      findings,
    }
  },
}

interface Finding {
  method: string
  path: string
  parameter: string
  info: string
}

async function attack (setting: Setting, url: string, modules: string[]) {
  const { output } = await run(setting, 'wapiti', [
    '--url', url, '--module', modules.join(','), '--scope', 'folder', '--flush-session', '--no-bugreport',
    '--timeout', TIMEOUT, '--verbose', '1', '--store-session', setting.directory,
    '--format', 'json', '--output', 'wapiti.json',
  ])
  const report = await readFile(join(setting.directory, 'wapiti.json'), 'utf8').catch(() => {
    throw new Error(`wapiti wrote no report:\n${output.slice(-2000)}`)
  })
  const { vulnerabilities, anomalies } = JSON.parse(report) as Record<string, Record<string, Finding[]>>
  return [vulnerabilities, anomalies].flatMap(kinds => Object.values(kinds!).flat())
    .filter(({ info }) => !ACCEPTED.some(({ finding }) => finding.test(info)))
    .map(({ method, path, parameter, info }) => `${method} ${path} ${parameter}: ${info}`)
}

/**
 * Serves a page with a form for each operation, because wapiti attacks forms. Forwards submissions to the service as
 * the operation defines them (path, query, header or JSON), and returns the responses unchanged.
 */
async function forward (url: string, operations: Operation[], request: IncomingMessage, response: ServerResponse) {
  const { pathname, searchParams } = new URL(request.url!, url)
  if (pathname === '/') return response.setHeader('content-type', 'text/html').end(operations.map(toForm).join('\n'))
  const operation = operations.find(({ id }) => pathname === `/${id}`)
  if (!operation) return response.writeHead(404).end()
  const sent = new Map([...searchParams, ...new URLSearchParams(await text(request))])
  try {
    const { status, headers, body } = await sendRequest(url, operation, sent)
    response.writeHead(status, headers).end(body)
  } catch {
    // The values may make an invalid request, such as a header of two lines.
    response.writeHead(400).end()
  }
}

/** Sends the request of an operation with these values. Returns the response for the client of the proxy. */
async function sendRequest (url: string, operation: Operation, sent: Map<string, string>) {
  const { method, path, inPath, inQuery, inHeader, headers, body } = operation
  const take = (values: object) => Object.keys(values).filter(name => sent.has(name))
    .map((name): [string, string] => [name, sent.get(name)!])
  const fill = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(sent.get(name) ?? inPath[name]!))
  const response = await fetch(`${url}${fill}?${new URLSearchParams(take(inQuery))}`, {
    method,
    redirect: 'manual',
    headers: { ...headers, ...Object.fromEntries(take(inHeader)), ...body && { 'content-type': 'application/json' } },
    ...body && { body: JSON.stringify(Object.fromEntries(take(body).map(([name, value]) => [name, toJson(value)]))) },
  })
  // fetch() has decoded the body and joined its chunks.
  const passed = [...response.headers].filter(([name]) => !/^(content-(encoding|length)|transfer-encoding)$/.test(name))
  return { status: response.status, headers: Object.fromEntries(passed), body: await response.text() }
}

/** Numbers stay numbers. */
const toJson = (value: string) => /^\d+$/.test(value) ? Number(value) : value

function toForm ({ id, method, inPath, inQuery, inHeader, body }: Operation) {
  const inputs = Object.entries({ ...inPath, ...inQuery, ...inHeader, ...body })
    .map(([name, value]) => `<input name="${name}" value="${String(value).replaceAll('"', '&quot;')}">`)
  return `<form action="/${id}" method="${method === 'GET' ? 'GET' : 'POST'}">
    ${inputs.join('')}<input type="submit">
  </form>`
}
