// Firefox closes streams without an error event if a person follows a link that downloads a file or returns 204. Only
// the watchdog of the typed client notices it. The page under test reports to the server of this test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'

import t from 'tap'

import { serve } from '../provider.ts'

/** What happened to the streams of a link, in order. The page reports it after the watchdog has opened its stream. */
interface Report {
  path: string
  events: string[]
}

/**
 * Follows each link while two streams are open, one of them with a watchdog. A second of the watchdog takes 100
 * milliseconds.
 */
const PAGE = (client: string) => `<!doctype html><title>Test</title><a>Link</a><script type="module">
const realTimeout = setTimeout
globalThis.setTimeout = (task, milliseconds) => realTimeout(task, milliseconds / 10)
${client.replace(/^import .*$/m, 'const createFetchClient = () => ({ use () {} })')}
let events
globalThis.EventSource = class extends EventSource {
  constructor (url) {
    super(url)
    const name = url.includes('bare') ? 'bare' : 'watched'
    for (const type of ['open', 'ping', 'error']) this.addEventListener(type, () => events.push(name + ' ' + type))
  }
}
const until = async condition => {
  while (!condition()) await new Promise(resolve => realTimeout(resolve, 20))
}
const link = document.querySelector('a')
for (const path of ['/events.ics', '/empty']) {
  events = []
  const bare = new EventSource('/live?bare')
  const stop = createClient({ baseUrl: location.origin }).live(['/clubs'], () => {})
  await until(() => events.includes('bare ping') && events.includes('watched ping'))
  events.push('link')
  link.href = path
  link.click()
  await until(() => events.lastIndexOf('watched open') > events.indexOf('link'))
  await fetch('/report', { method: 'POST', body: JSON.stringify({ path, events }) })
  stop()
  bare.close()
}
</script>`

t.test('A watchdog opens a stream again that Firefox has closed for a link', { timeout: 60_000 }, async t => {
  const page = PAGE(await readFile('client/index.js', 'utf8'))
  const reports: Report[] = []
  let complete = () => {}
  const completed = new Promise<void>(resolve => { complete = resolve })
  const { origin } = await serve(t, async (request, response) => {
    if (request.url!.startsWith('/live')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('retry: 100\ndata: {"list":"/clubs"}\n\n')
      // As often as the service sends them, in the time of the page.
      const pings = setInterval(() => response.write('event: ping\ndata: {}\n\n'), 1500)
      response.on('close', () => clearInterval(pings))
    } else if (request.url === '/events.ics') {
      response.writeHead(200, { 'content-type': 'text/calendar', 'content-disposition': 'attachment' })
      response.end('BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n')
    } else if (request.url === '/') {
      response.writeHead(200, { 'content-type': 'text/html' }).end(page)
    } else {
      if (request.url === '/report') reports.push(await json(request) as Report)
      if (reports.length === 2) complete()
      response.writeHead(204).end()
    }
  })
  const profile = await mkdtemp(join(tmpdir(), 'firefox-'))
  await writeFile(join(profile, 'user.js'), `user_pref('browser.download.dir', ${JSON.stringify(profile)})
user_pref('browser.download.folderList', 2)
user_pref('datareporting.policy.dataSubmissionEnabled', false)
user_pref('browser.shell.checkDefaultBrowser', false)
`)
  const firefox = process.env.FIREFOX_PATH || 'firefox-esr'
  const child = spawn(firefox, ['--headless', '--no-remote', '--profile', profile, origin], {
    stdio: 'ignore', env: { ...process.env, HOME: profile, MOZ_CRASHREPORTER_DISABLE: '1' },
  })
  t.teardown(async () => {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    await rm(profile, { recursive: true, force: true, maxRetries: 5 })
  })
  await completed
  t.strictSame(reports.map(({ path }) => path), ['/events.ics', '/empty'])
  for (const { path, events } of reports) {
    const link = events.indexOf('link')
    const before = ['bare open', 'bare ping', 'watched open', 'watched ping']
    // On a slow machine, more pings arrive before the link.
    t.strictSame([...new Set(events.slice(0, link))].sort(), before, `${path}: both streams are open`)
    t.strictSame(events.slice(link + 1), ['watched open'], `${path}: no error, and only the watchdog repairs it`)
  }
})
