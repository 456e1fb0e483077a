import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { mock } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { EventSource } from 'eventsource'
import sharp from 'sharp'

import { createClient, type PublicList } from '#client'
import { stopClock } from './clock.ts'
import { ACCOUNT } from './fixtures.ts'
import { build, insert, person } from './helper.ts'
import t from './suite.ts'

// The service has a single stream.
const app = await build(t, { LIVE_CLIENTS: '1' })
const admin = await person(app, 'ADMIN')
await app.listen({ port: 0 })
const baseUrl = `http://localhost:${(app.server.address() as AddressInfo).port}`

t.test('A client without a token calls public operations', async t => {
  await app.sql`TRUNCATE events CASCADE`
  const client = createClient({ baseUrl })
  const events = await client.GET('/events', { params: { query: { limit: '3' } } })
  t.strictSame(events.data, { events: [], pagination: { page: 1, pages: 0, total: 0, limit: 3 } })
  const me = await client.GET('/auth/me')
  t.equal(me.response.status, 401)
  t.strictSame([me.data, me.error], [undefined, { message: 'Access token required' }])
})

t.test('A client sends its token', async t => {
  const client = createClient({ baseUrl, token: admin.token })
  const { data } = await client.GET('/auth/me')
  t.match(data, { user: { id: admin.id, role: 'ADMIN', club: null } })
  const testimonial = { name: 'Grace Hopper', content: 'I learned a lot', batchYear: 2026 }
  const created = await client.POST('/testimonials', { body: testimonial })
  t.match(created.data?.testimonial, testimonial)
  const path = { id: created.data!.testimonial.id }
  const changed = await client.PUT('/testimonials/{id}', { params: { path }, body: { batchYear: 2025 } })
  t.equal(changed.data?.testimonial.batchYear, 2025)
  const deleted = await client.DELETE('/testimonials/{id}', { params: { path } })
  t.equal(deleted.response.status, 204)
  t.equal(deleted.error, undefined)
})

t.test('A client calls operations of the user of its token', async t => {
  const client = createClient({ baseUrl, token: admin.token })
  const { data } = await client.POST('/me/calendar')
  t.match(data?.calendar.path, /^\/feeds\/me\/[\w-]+\.ics$/)
  t.equal((await fetch(baseUrl + data!.calendar.path)).status, 200)
  t.equal((await client.DELETE('/me/calendar')).response.status, 200)
  const { data: mine } = await client.GET('/me/export')
  t.match(mine, { account: { id: admin.id }, blogs: [], calendar: null })
  t.strictSame((await client.DELETE('/me/calendar')).error, { message: 'Calendar not found' })
})

t.test('A client uploads a file as it is', async t => {
  const client = createClient({ baseUrl, token: admin.token })
  const png = await sharp({ create: { width: 9, height: 9, channels: 3, background: 'teal' } }).png().toBuffer()
  const { data, error } = await client.POST('/me/pictures', { body: new Blob([png], { type: 'image/png' }) })
  t.match(data?.picture, { width: 9, height: 9 }, String(error?.message))
  const headers = { 'content-type': 'text/plain' }
  t.equal((await client.POST('/me/pictures', { body: new Blob([png]), headers })).response.status, 415)
})

t.test('A client watches lists, and connects again after a 503', async t => {
  const opened: EventSource[] = []
  const refused: EventSource[] = []
  class Source extends EventSource {
    constructor (url: string) {
      super(url)
      opened.push(this)
      this.addEventListener('error', () => { refused.push(this) })
    }
  }
  t.intercept(globalThis, 'EventSource', { value: Source })
  const pass = stopClock(t)
  const { live } = createClient({ baseUrl: `${baseUrl}/` })
  const changes = (lists: PublicList[]) => {
    const heard: PublicList[] = []
    const stop = live(lists, ({ list, etag }) => {
      if (/^"[\w-]+"$/.test(etag)) heard.push(list)
    })
    t.teardown(stop)
    return { heard, stop }
  }
  const first = changes(['/mentors', '/events?limit=12'])
  while (first.heard.length < 2) await sleep(10)
  await insert(app, 'events', { club_id: await insert(app, 'clubs') })
  while (first.heard.length < 3) await sleep(10)
  // The first messages arrive in any order.
  t.strictSame(first.heard.slice(0, 2).sort(), ['/events?limit=12', '/mentors'])
  t.strictSame(first.heard.slice(2), ['/events?limit=12'])

  // The one stream is taken.
  const [second, third] = [changes(['/clubs']), changes(['/mentors'])]
  while (refused.length < 2) await sleep(10)
  third.stop()
  first.stop()
  while (app.live.clients > 0) await sleep(10)
  // The service is asked again after 10 to 12.5 seconds.
  pass(9999)
  t.equal(opened.length, 3)
  pass(2501)
  while (second.heard.length < 1) await sleep(10)
  second.stop()
  while (app.live.clients > 0) await sleep(10)
  t.strictSame(third.heard, [], 'it was stopped while it waited')
})

t.test('A client opens a new stream after 35 to 44 seconds without a message or a ping', t => {
  let sources: Source[] = []
  class Source extends EventTarget {
    readonly CLOSED = 2
    readyState = 0
    onopen = () => {}
    onmessage = (_message: object) => {}
    constructor () {
      super()
      sources.push(this)
    }

    close () { this.readyState = this.CLOSED }
  }
  t.intercept(globalThis, 'EventSource', { value: Source })
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  let random = 0
  t.intercept(Math, 'random', { value: () => random })
  for (random of [0, 1]) {
    sources = []
    const heard: unknown[] = []
    const stop = createClient({ baseUrl }).live(['/mentors'], change => heard.push(change))
    const states = () => sources.map(({ readyState }) => readyState)
    const isReopenedAfter = (seconds: number) => {
      const before = sources.length
      mock.timers.tick(seconds * 1000 * (1 + random / 4) - 1)
      t.equal(sources.length, before)
      mock.timers.tick(1)
      t.strictSame(states(), [...Array(before).fill(2), 0], `after ${seconds} seconds`)
    }
    // A stream that does not open is given up, first soon, because an idle connection may have gone silent as well.
    for (const seconds of [5, 10, 20, 35, 35]) isReopenedAfter(seconds)
    const source = sources.at(-1)!
    for (const sign of [
      () => source.onopen(),
      () => source.dispatchEvent(new Event('ping')),
      () => source.onmessage({ data: '{"list":"/mentors"}' }),
    ]) {
      mock.timers.tick(34_000)
      sign()
    }
    t.strictSame(heard, [{ list: '/mentors' }])
    for (const seconds of [35, 5, 10]) isReopenedAfter(seconds)
    stop()
    mock.timers.tick(100_000)
    t.strictSame(states(), Array(9).fill(2))
  }
  t.end()
})

t.test('A client returns texts without an option', async t => {
  const client = createClient({ baseUrl, token: admin.token })
  const users = await client.GET('/exports/users.csv')
  t.match(users.data, `${admin.email},`)
  t.match((await client.GET('/feeds/events.ics')).data, /^BEGIN:VCALENDAR/)
  t.match((await client.GET('/feeds/blogs.atom')).data, /<feed /)
  const { data } = await client.GET('/feeds/events.ics', { parseAs: 'text' })
  t.match(data, /^BEGIN:VCALENDAR/)
})

t.test('A client gives every failure a message', async t => {
  const failure = async (body: string | null, type: string, status = 502) => {
    const response = () => new Response(body, { status, headers: type ? { 'content-type': type } : {} })
    const client = createClient({ baseUrl, fetch: async () => response() })
    const { data, error, response: { status: received } } = await client.GET('/clubs')
    t.strictSame([data, received], [undefined, status === 200 ? 502 : status])
    return error
  }
  const unavailable = { message: 'The service is not available (status 502)' }
  t.strictSame(await failure('<html>Bad Gateway', 'text/html'), unavailable)
  t.strictSame(await failure('<html>Sign in to this Wi-Fi', 'text/html', 200),
    { message: 'The service is not available (status 200)' })
  t.strictSame(await failure(null, ''), unavailable)
  t.strictSame(await failure('', 'application/json'), unavailable)
  t.strictSame(await failure('{}', 'application/json'), unavailable)
  t.strictSame(await failure('null', 'application/json'), unavailable)
  t.strictSame(await failure('OAuth callback failed', 'text/plain; charset=utf-8', 500),
    { message: 'OAuth callback failed' })
  t.strictSame(await failure('{"message":"Error fetching clubs"}', 'application/json', 500),
    { message: 'Error fetching clubs' })
})

t.test('A client gets the pages of a list', async t => {
  const club = await insert(app, 'clubs')
  for (let day = 1; day <= 5; day++) await insert(app, 'events', { club_id: club, date: `2090-01-0${day}T18:00Z` })
  const client = createClient({ baseUrl })
  const query = { club, limit: '2' }
  const pages: string[][] = []
  for await (const { events } of client.pages('/agenda', { params: { query } })) {
    pages.push(events.map(({ date }) => date.slice(8, 10)))
  }
  t.strictSame(pages, [['01', '02'], ['03', '04'], ['05']])
  const refused = client.pages('/agenda', { params: { query: { limit: 'x' } } })
  await t.rejects(refused.next(), { message: 'Validation error' })
})

t.test('A token may be set and removed', async t => {
  let token: string | undefined
  const client = createClient({ baseUrl, token: () => token })
  const statusOf = async () => (await client.GET('/auth/me')).response.status
  t.equal(await statusOf(), 401)
  token = (await client.POST('/auth/register', { body: ACCOUNT })).data!.token
  t.equal(await statusOf(), 200)
  token = undefined
  t.equal(await statusOf(), 401)
})

t.test('A client has browsers revalidate what they have stored, unless told otherwise', async t => {
  const modes: string[] = []
  const seen = (request: Request) => {
    modes.push(request.cache)
    return fetch(request)
  }
  await createClient({ baseUrl, fetch: seen }).GET('/events')
  // The types of browsers contain it, but the types of Node.js do not.
  const mode = (cache: string): object => ({ cache })
  await createClient({ baseUrl, fetch: seen }).GET('/events', mode('default'))
  await createClient({ baseUrl, fetch: seen, ...mode('reload') }).GET('/events')
  t.strictSame(modes, ['no-cache', 'default', 'reload'])
})

t.test('The client has the version of the service', async t => {
  const [client, service] = await Promise.all(['client/package.json', 'package.json']
    .map(async file => JSON.parse(await readFile(file, 'utf8'))))
  t.equal(client.version, service.version)
  t.equal(client.dependencies['openapi-fetch'], service.devDependencies['openapi-fetch'])
})
