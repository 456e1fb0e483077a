// Firefox closes a stream without an error if a person follows a link that downloads a file or returns 204. The page
// under test reports to the server of this test.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import t from 'tap'

import { serve } from '../provider.ts'

const firefox = process.env.FIREFOX_PATH || 'firefox-esr'

/** Tells whether this machine has Firefox. */
function isInstalled () {
  try {
    return Boolean(execFileSync('sh', ['-c', `command -v ${firefox}`]))
  } catch {
    return false
  }
}

/** A second of the watchdog takes 100 milliseconds. */
const PAGE = (client: string) => `<!doctype html><title>Test</title><a>Link</a><script type="module">
const slow = setTimeout
globalThis.setTimeout = (task, milliseconds) => slow(task, milliseconds / 10)
${client.replace(/^import .*$/m, 'const createFetchClient = () => ({ use () {} })')}
createClient({ baseUrl: location.origin }).live(['/clubs'], () => fetch('/heard' + location.hash))
slow(() => {
  const link = document.querySelector('a')
  link.href = location.hash.slice(1)
  link.click()
}, 1000)
</script>`

t.test('A stream that Firefox closes for a link is opened again', {
  skip: !isInstalled() && 'Firefox is not installed',
  timeout: 60_000,
}, async t => {
  const page = PAGE(await readFile('client/index.js', 'utf8'))
  for (const path of ['/events.ics', '/empty']) {
    const streams: ServerResponse[] = []
    let followedAt = 0
    let closedAt = 0
    let reopen = () => {}
    const reopened = new Promise<void>(resolve => { reopen = resolve })
    const { origin } = await serve(t, (request, response) => {
      if (request.url!.startsWith('/live')) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write('data: {"list":"/clubs"}\n\n')
        response.on('close', () => { closedAt ||= performance.now() })
        streams.push(response)
        if (followedAt > 0) reopen()
        // Pings, as often as the service sends them in the time of the page.
        const pings = setInterval(() => response.write('event: ping\ndata: {}\n\n'), 1500)
        response.on('close', () => clearInterval(pings))
      } else if (request.url === '/events.ics') {
        followedAt = performance.now()
        response.writeHead(200, { 'content-type': 'text/calendar', 'content-disposition': 'attachment' })
        response.end('BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n')
      } else if (request.url === '/empty') {
        followedAt = performance.now()
        response.writeHead(204).end()
      } else response.writeHead(200, { 'content-type': 'text/html' }).end(request.url === '/' ? page : '')
    })
    const profile = await mkdtemp(join(tmpdir(), 'firefox-'))
    await writeFile(join(profile, 'user.js'), `user_pref('browser.download.dir', ${JSON.stringify(profile)})
user_pref('browser.download.folderList', 2)
user_pref('datareporting.policy.dataSubmissionEnabled', false)
user_pref('browser.shell.checkDefaultBrowser', false)
`)
    const child = spawn(firefox, ['--headless', '--no-remote', '--profile', profile, `${origin}/#${path}`], {
      stdio: 'ignore', env: { ...process.env, HOME: profile, MOZ_CRASHREPORTER_DISABLE: '1' },
    })
    t.teardown(async () => {
      child.kill()
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    })
    await reopened
    t.ok(Math.abs(closedAt - followedAt) < 1000, `${path}: Firefox closes the stream when the link is followed`)
    t.equal(streams.length, 2, path)
    t.ok(performance.now() - followedAt < 6000, `${path}: within a minute of the page`)
  }
})
