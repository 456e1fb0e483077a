// Streams of changes, as Chromium, Firefox and curl read them: directly, and through nginx, HAProxy and Caddy.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import postgres from 'postgres'

import { startPrimary } from '../faults/database.ts'
import { startProcess, startProgram, writeFor, NOBODY } from '../faults/programs.ts'
import { startService } from '../faults/service.ts'
import { freePort } from '../process.ts'
import { findVersion, type Judge, run, type Setting } from './judge.ts'

const LISTS = ['/clubs', '/mentors']

/** How long nothing changes, in milliseconds: longer than the timeouts of nginx (60 s) and HAProxy's sample (50 s). */
const IDLE = 70_000

/** How soon a reader hears of a change, in milliseconds. */
const TOLD = 1500

/** For how long a stopping instance accepts requests, in seconds. */
const STOP_DELAY = 5

/** nginx as its beginner's guide configures a proxy, with the compression of Debian's package. */
const nginxOf = (port: number, instances: number[]) => `
daemon off;
pid nginx.pid;
error_log nginx.error.log;
events {}
http {
  gzip on;
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  upstream instances { ${instances.map(instance => `server 127.0.0.1:${instance};`).join(' ')} }
  server {
    listen 127.0.0.1:${port};
    location / { proxy_pass http://instances; }
  }
}
`

/** HAProxy with the timeouts of Debian's package. */
const haproxyOf = (port: number, instances: number[]) => `
defaults
  mode http
  timeout connect 5000
  timeout client 50000
  timeout server 50000
frontend public
  bind 127.0.0.1:${port}
  default_backend instances
backend instances
${instances.map((instance, n) => `  server instance-${n} 127.0.0.1:${instance} check`).join('\n')}
`

/** Caddy with compression. Without a retry, it would send requests to an instance that has stopped. */
const caddyOf = (port: number, instances: number[]) => `
{
  admin off
  auto_https off
}
http://127.0.0.1:${port} {
  encode gzip
  reverse_proxy ${instances.map(instance => `127.0.0.1:${instance}`).join(' ')} {
    lb_try_duration 5s
  }
}
`

/**
 * The page of a different origin that the browsers open. It reports what EventSource tells. On the first route, it
 * keeps five of the six connections that a browser opens over HTTP/1.1, and reads a list after each message.
 */
const pageOf = (routes: string[]) => `<!doctype html><title>Streams</title><script>
const report = (...values) => fetch('/report?' + new URLSearchParams({ reader: location.search.slice(1) }), {
  method: 'POST', body: JSON.stringify(values)
})
const query = '/live?' + new URLSearchParams(${JSON.stringify(LISTS.map(list => ['list', list]))})
for (const [n, route] of ${JSON.stringify(routes)}.entries()) {
  const source = new EventSource(route + query)
  source.onopen = () => report(n, 'open')
  source.onerror = () => report(n, source.readyState === EventSource.CLOSED ? 'closed' : 'again')
  source.onmessage = async ({ data, lastEventId }) => {
    const { list, etag } = JSON.parse(data)
    const read = n > 0 ? etag : (await fetch(route + list, { cache: 'no-cache' })).headers.get('etag')
    report(n, 'message', list, etag, lastEventId, read)
  }
}
for (let n = 0; n < 4; n++) new EventSource(${JSON.stringify(routes[0])} + query)
</script>`

type Report = [route: number, kind: string, list?: string, etag?: string, id?: string, read?: string]

export const live: Judge = {
  program: 'firefox-esr',
  install: 'apt-get install firefox-esr chromium curl nginx haproxy caddy',
  version: async setting => {
    const versions = [
      'firefox-esr --version', 'chromium --version', 'curl --version', 'nginx -v', 'haproxy -v', 'caddy version',
    ]
    const outputs = await Promise.all(versions.map(command => run(setting, 'sh', ['-c', command])))
    return outputs.map(({ output }) => findVersion(output)).join(', ')
  },

  async run (setting) {
    const { scope, directory } = setting
    const findings: string[] = []
    const { databaseUrl } = await startPrimary(scope, directory)
    const sql = postgres(databaseUrl, { max: 1 })
    scope.teardown(() => sql.end())
    const server = createServer(async (request, response) => {
      const url = new URL(request.url!, 'http://localhost')
      if (request.method === 'POST') note(url.searchParams.get('reader')!, JSON.parse(await text(request)))
      response.setHeader('content-type', 'text/html').end(request.method === 'GET' ? page : '')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    scope.teardown(() => server.close().closeAllConnections())
    const origin = `http://localhost:${(server.address() as AddressInfo).port}`

    const variables = { DATABASE_URL: databaseUrl, FRONTEND_URL: origin, STOP_DELAY: String(STOP_DELAY) }
    const instances = await Promise.all([1, 2].map(() => startService(scope, directory, variables)))
    const [stopping, staying] = instances as [typeof instances[0], typeof instances[0]]
    const ports = instances.map(({ url }) => Number(new URL(url).port))
    const [nginx, haproxy, caddy] = [await freePort(), await freePort(), await freePort()]
    const account = NOBODY
    const folder = join(directory, 'proxies')
    await run(setting, 'install', ['-d', '-o', String(account.uid), '-g', String(account.gid), folder])
    const nginxFile = await writeFor(account, folder, 'nginx.conf', nginxOf(nginx, ports))
    await startProgram(scope, folder, 'nginx', nginx, ['-p', folder, '-c', nginxFile, '-e', join(folder, 'early.log')])
    const haproxyFile = await writeFor(account, folder, 'haproxy.cfg', haproxyOf(haproxy, ports))
    await startProgram(scope, folder, 'haproxy', haproxy, ['-db', '-f', haproxyFile])
    const caddyFile = await writeFor(account, folder, 'Caddyfile', caddyOf(caddy, ports))
    await startProgram(scope, folder, 'caddy', caddy, ['run', '--adapter', 'caddyfile', '--config', caddyFile])
    const routes = [staying.url, ...[nginx, haproxy, caddy].map(port => `http://127.0.0.1:${port}`)]
    const names = ['directly', 'through nginx', 'through HAProxy', 'through Caddy']
    const page = pageOf(routes)

    const reports = new Map<string, (Report & { at?: number })[]>()
    function note (reader: string, report: Report) {
      reports.set(reader, [...reports.get(reader) ?? [], Object.assign(report, { at: performance.now() })])
      const [, kind] = report
      // A commit right after the stream was opened.
      if (kind === 'open') addClub().catch(() => {})
    }
    const addClub = () => sql`INSERT INTO clubs (name, description) VALUES (new_id()::text, 'A club')`
    const messagesOf = (reader: string, route: number) =>
      (reports.get(reader) ?? []).filter(([where, kind]) => where === route && kind === 'message')

    /** Expects that each reader knows the current list of clubs within this time. */
    async function expectCurrent (moment: string, milliseconds: number) {
      const headers = { 'accept-encoding': 'identity' }
      const etag = (await fetch(`${staying.url}/clubs`, { headers })).headers.get('etag')
      const deadline = performance.now() + milliseconds
      const missing = () => readers.flatMap(reader => routes.flatMap((_route, n) => {
        const last = messagesOf(reader, n).findLast(([, , list]) => list === '/clubs')
        return last?.[3] === etag ? [] : [`${reader} ${names[n]}: ${moment}, it was not told`]
      }))
      while (missing().length > 0 && performance.now() < deadline) await sleep(20)
      findings.push(...missing())
    }
    const countOf = (kind: string) => [...reports.values()].flat().filter(report => report[1] === kind).length

    const readers = ['chromium', 'firefox', 'curl']
    const options = (environment: NodeJS.Dict<string> = {}) => ({ environment: { HOME: directory, ...environment } })
    const isUp = async () => true
    await startProcess(scope, directory, [
      process.env.CHROMIUM_PATH || 'chromium', '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run',
      '--disable-background-networking', `--user-data-dir=${join(directory, 'chromium')}`, `${origin}/?chromium`,
    ], isUp, { ...options(), name: 'chromium' })
    await run(setting, 'mkdir', ['firefox'])
    await startProcess(scope, directory, [
      'firefox-esr', '--headless', '--no-remote', '--profile', join(directory, 'firefox'), `${origin}/?firefox`,
    ], isUp, { ...options({ MOZ_CRASHREPORTER_DISABLE: '1' }), name: 'firefox' })
    for (const [n, route] of routes.entries()) readByCurl(setting, n, route, note)

    const complete = () => readers.every(reader => routes.every((_route, n) =>
      LISTS.every(list => messagesOf(reader, n).some(([, , told]) => told === list))))
    const patience = performance.now() + 40_000
    while (!complete() && performance.now() < patience) await sleep(100)
    await sleep(TOLD)
    await expectCurrent('right after it opened', TOLD)
    for (const reader of ['chromium', 'firefox']) {
      for (const [, , list, etag, , read] of messagesOf(reader, 0).slice(-1)) {
        if (read?.replace(/-(br|gzip)"$/, '"') !== etag) findings.push(`${reader} read ${list} as ${read}, not ${etag}`)
      }
    }

    const before = countOf('message')
    await sleep(IDLE)
    for (const kind of ['again', 'closed']) {
      if (countOf(kind) > 0) findings.push(`${countOf(kind)} streams have ended while nothing changed`)
    }
    if (countOf('message') !== before) findings.push('while nothing changed, a message arrived')
    await addClub()
    await expectCurrent(`after ${IDLE / 1000} s`, TOLD)

    const told = countOf('message')
    const opened = countOf('open')
    stopping.child.kill('SIGTERM')
    await stopping.ended
    await sleep(3500)
    if (countOf('open') === opened) findings.push('no stream has moved to the other instance')
    if (countOf('closed') > 0) findings.push(`${countOf('closed')} streams gave up when an instance stopped`)
    // The commit right after each opening may be told, but each entity tag once.
    for (const reader of ['chromium', 'firefox']) {
      for (const [n, name] of names.entries()) {
        const etags = messagesOf(reader, n).map(([, , list, etag]) => `${list} ${etag}`)
        const repeated = etags.filter((etag, index) => etags.indexOf(etag) !== index)
        if (repeated.length > 0) findings.push(`${reader} ${name}: ${repeated.length} messages told what it knew`)
      }
    }
    readers.splice(readers.indexOf('curl'), 1)
    await addClub()
    await expectCurrent('after an instance had stopped', 2 * TOLD)
    const subject = `${routes.length * 3} streams, ${told} messages, ${countOf('open') - opened} streams that moved`
    return { subject, findings }
  },
}

/** Reads a stream by curl, and reports its messages. */
function readByCurl (
  { scope }: Setting, route: number, url: string, note: (reader: string, report: Report) => void
) {
  const query = new URLSearchParams(LISTS.map((list): [string, string] => ['list', list]))
  const child = spawn('curl', ['--silent', '--no-buffer', `${url}/live?${query}`])
  scope.teardown(() => child.kill('SIGKILL'))
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', data => {
    const blocks = (rest + data).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const [, id, message] = /^id: (.*)\ndata: (.*)$/.exec(block) ?? []
      if (!message) continue
      const { list, etag } = JSON.parse(message)
      note('curl', [route, 'message', list, etag, id, etag])
    }
  })
}
