// Parses calendars and feeds as subscribers do: with two iCalendar parsers, and a strict XML parser.

import fc from 'fast-check'
import ICAL from 'ical.js'
import nodeIcal from 'node-ical'
import { SaxesParser } from 'saxes'

import { build, inject, insert, person } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const FRONTEND_URL = 'https://app.example.org,https://other.example.org'

const app = await build(t, { FRONTEND_URL, PUBLIC_URL: 'https://api.example.org' })
const bare = await build(t)

const addClub = (fields: Record<string, unknown> = {}, on = app) => insert(on, 'clubs', fields)

/** Inserts rows into the database of a service. */
async function addEvents (events: Record<string, unknown>[], { sql } = app) {
  const rows = events.map(event => ({ title: 'Open day', description: 'Come and see', date: new Date(), ...event }))
  const added = rows.length > 0 ? await sql<{ id: string }[]>`INSERT INTO events ${sql(rows)} RETURNING id` : []
  return added.map(({ id }) => id)
}

async function addBlogs (blogs: Record<string, unknown>[], { sql } = app) {
  const rows = blogs.map(blog => ({ title: 'A title', content: 'Content', status: 'PUBLISHED', ...blog }))
  const added = rows.length > 0 ? await sql<{ id: string }[]>`INSERT INTO blogs ${sql(rows)} RETURNING id` : []
  return added.map(({ id }) => id)
}

/** Deletes everything except users. */
async function empty ({ sql } = app) {
  await sql`
    WITH registrations AS (DELETE FROM event_registrations), events AS (DELETE FROM events),
      blogs AS (DELETE FROM blogs), members AS (UPDATE users SET club_id = NULL WHERE club_id IS NOT NULL)
    DELETE FROM clubs
  `
}

/** Requests a feed. Returns its body, of this type. */
async function read (t: Test, path: string, type: string, service = app) {
  const { statusCode, headers, body } = await inject(service, 'GET', path)
  t.strictSame([statusCode, headers['content-type']], [200, type], path)
  return body
}

const readCalendar = async (t: Test, path: string, service = app) =>
  parseCalendar(t, await read(t, path, 'text/calendar; charset=utf-8', service))

interface CalendarEvent {
  uid: string
  sequence: number
  summary: string
  description: string
  start: string
  hours: number
  stamp: string
  lastModified: string
  created: string
  organizer: string
  url: string | null
}

/** Parses a calendar. Asserts that it follows RFC 5545, and that both parsers agree. */
function parseCalendar (t: Test, body: string) {
  const lines = body.split('\r\n')
  t.equal(lines.pop(), '', 'the last line ends with CRLF')
  const wrong = lines.filter(line => Buffer.byteLength(line) > 75 || /[^\P{Cc}\t]/u.test(line))
  t.strictSame(wrong, [], 'lines are short and have no control characters')

  const calendar = new ICAL.Component(ICAL.parse(body))
  const events = calendar.getAllSubcomponents('vevent').map(component => {
    const event = new ICAL.Event(component)
    const time = (name: string) => String(component.getFirstPropertyValue(name))
    return {
      uid: event.uid,
      sequence: event.sequence,
      summary: event.summary,
      description: event.description,
      start: time('dtstart'),
      hours: event.duration.toSeconds() / 3600,
      stamp: time('dtstamp'),
      lastModified: time('last-modified'),
      created: time('created'),
      organizer: String(component.getFirstProperty('organizer')?.getFirstParameter('cn')),
      url: component.getFirstPropertyValue('url') as string | null,
    } satisfies CalendarEvent
  })

  // node-ical reads an escaped backslash before an n or N as a line break, and drops blank or quoted ends.
  const comparable = (text = '') => text.replace(/[\\\s"]/g, '').replace(/n/gi, '')
  const others = Object.values(nodeIcal.sync.parseICS(body)).filter(component => component?.type === 'VEVENT')
  const shown = (event: nodeIcal.VEvent) => ({
    uid: event.uid,
    sequence: Number(event.sequence),
    summary: comparable(event.summary as string | undefined),
    description: comparable(event.description as string | undefined),
    start: `${event.start.toISOString().slice(0, 19)}Z`,
    hours: (event.end!.getTime() - event.start.getTime()) / 3_600_000,
  })
  t.strictSame(
    others.map(event => shown(event as nodeIcal.VEvent)),
    events.map(({ uid, sequence, summary, description, start, hours }) =>
      ({ uid, sequence, summary: comparable(summary), description: comparable(description), start, hours })),
    'another reader takes it for the same')
  return { name: String(calendar.getFirstPropertyValue('name')), calendar, events }
}

interface Element {
  name: string
  attributes: Record<string, string>
  children: Element[]
  text: string
}

/** Parses XML. Throws unless it is well-formed. */
function parseXml (body: string) {
  const root: Element = { name: '', attributes: {}, children: [], text: '' }
  const open = [root]
  const parser = new SaxesParser()
  parser.on('error', error => { throw error })
  parser.on('opentag', ({ name, attributes }) => {
    const element = { name, attributes: { ...attributes }, children: [], text: '' }
    open.at(-1)!.children.push(element)
    open.push(element)
  })
  parser.on('text', text => { open.at(-1)!.text += text })
  parser.on('cdata', text => { open.at(-1)!.text += text })
  parser.on('closetag', () => { open.pop() })
  parser.write(body).close()
  return root.children[0]!
}

/** The text of a nested element. */
const textOf = (element: Element, ...names: string[]) => childOf(element, ...names)?.text

const childOf = (element: Element, ...names: string[]) =>
  names.reduce<Element | undefined>((found, name) => found?.children.find(child => child.name === name), element)

async function readFeed (t: Test, service = app) {
  const body = await read(t, '/feeds/blogs.atom', 'application/atom+xml; charset=utf-8', service)
  const feed = parseXml(body)
  return { body, feed, entries: feed.children.filter(({ name }) => name === 'entry') }
}

t.test('GET /feeds/events.ics is a calendar of all events, for anyone', async t => {
  await empty()
  const [chess, go] = [await addClub({ name: 'Chess; "the" Club, Ltd.' }), await addClub({ name: 'Go' })]
  const createdAt = new Date('2026-01-01T00:00:00.900Z')
  const [first, second] = [...await addEvents([
    { club_id: chess, date: new Date('2026-01-31T09:30:00.120Z'), created_at: createdAt, updated_at: createdAt },
  ]), ...await addEvents([
    { club_id: go, date: new Date('2026-03-29T01:30:00Z'), title: 'Go, go; go\\n', description: 'Line 1\r\nLine 2\n' },
  ])]
  const { name, calendar, events } = await readCalendar(t, '/feeds/events.ics')
  t.equal(name, 'Events')
  t.equal(calendar.getFirstPropertyValue('version'), '2.0')
  t.match(calendar.getFirstPropertyValue('prodid'), /^-\/\/.+\/\/EN$/)
  t.equal(String(calendar.getFirstPropertyValue('refresh-interval')), 'PT1H')
  t.equal(calendar.getFirstPropertyValue('x-published-ttl'), 'PT1H')
  t.equal(calendar.getFirstPropertyValue('method'), null, 'it is not an invitation')
  t.strictSame(events[0], {
    uid: first,
    sequence: 0,
    summary: 'Open day',
    description: 'Come and see',
    start: '2026-01-31T09:30:00Z',
    hours: 2,
    stamp: '2026-01-01T00:00:00Z',
    lastModified: '2026-01-01T00:00:00Z',
    created: '2026-01-01T00:00:00Z',
    organizer: 'Chess; "the" Club, Ltd.',
    url: `https://app.example.org/events/${first}`,
  })
  t.match(events[1], { uid: second, summary: 'Go, go; go\\n', description: 'Line 1\nLine 2\n', organizer: 'Go' })
  t.equal(events.length, 2)
  t.notMatch(await read(t, '/feeds/events.ics', 'text/calendar; charset=utf-8'), '@', 'no email')
})

t.test('GET /feeds/events.ics has the time of the last change, and a stable UID', async t => {
  await empty()
  const club = await addClub()
  const head = await person(app, 'CLUB_HEAD', { club_id: club })
  const past = new Date('2026-01-01T00:00:00Z')
  const [id] = await addEvents([{ club_id: club, created_at: past, updated_at: past }])
  await head.inject('PUT', `/events/${id}`, { title: 'Moved', data: '2030-01-31T09:30:00+01:00' })
  const { events: [event] } = await readCalendar(t, '/feeds/events.ics')
  t.match(event, { uid: id, summary: 'Moved', start: '2030-01-31T08:30:00Z', created: '2026-01-01T00:00:00Z' })
  t.ok(event!.lastModified > '2026-01-01T00:00:00Z')
  t.equal(event!.stamp, event!.lastModified)
})

t.test('The SEQUENCE of an event grows with each change of its title, date or club, in all calendars', async t => {
  await empty()
  const [chess, go] = [await addClub(), await addClub()]
  const [admin, ada] = [await person(app, 'ADMIN'), await person(app)]
  const [id] = await addEvents([{ club_id: chess }])
  await ada.inject('POST', `/events/${id}/register`)
  const own = (await ada.inject('POST', '/me/calendar')).json().calendar.path
  let club = chess
  for (const [changes, sequence] of [
    [{}, 0], [{ title: 'Closed day' }, 1], [{ title: 'Closed day' }, 1], [{ description: 'Stay at home' }, 1],
    [{ data: '2030-01-31T09:30:00Z' }, 2], [{ clubId: go }, 3], [{ title: 'Open day', clubId: chess }, 4],
  ] as const) {
    t.equal((await admin.inject('PUT', `/events/${id}`, changes)).statusCode, 200)
    if ('clubId' in changes) club = changes.clubId
    for (const path of ['/feeds/events.ics', `/feeds/clubs/${club}.ics`, own]) {
      t.match((await readCalendar(t, path)).events, [{ uid: id, sequence }], `${path} ${JSON.stringify(changes)}`)
    }
  }
})

// RFC 5545, § 3.8.2.2: DTEND is later than DTSTART.
t.test('Calendars give an event that ends in the second of its start a duration', async t => {
  await empty()
  const admin = await person(app, 'ADMIN')
  const [id] = await addEvents([{ club_id: await addClub(), date: '2030-03-30T10:00:00.100Z' }])
  const times = async (endsAt: string) => {
    t.equal((await admin.inject('PUT', `/agenda/${id}`, { endsAt })).statusCode, 200)
    const { calendar } = await readCalendar(t, '/feeds/events.ics')
    return ['dtstart', 'dtend', 'duration'].map(name =>
      calendar.getFirstSubcomponent('vevent')!.getFirstPropertyValue(name)?.toString())
  }
  t.strictSame(await times('2030-03-30T10:00:00.900Z'), ['2030-03-30T10:00:00Z', undefined, 'PT1S'])
  t.strictSame(await times('2030-03-30T10:00:01.000Z'), ['2030-03-30T10:00:00Z', '2030-03-30T10:00:01Z', undefined])
})

t.test('Own calendars have end, place and STATUS:TENTATIVE without a seat, and no declined events', async t => {
  await empty()
  const club = await addClub()
  const [admin, ada, bob] = [await person(app, 'ADMIN'), await person(app), await person(app)]
  const [id] = await addEvents([{ club_id: club, date: '2030-03-30T10:00:00Z' }])
  const onlineUrl = 'https://meet.example.org/'
  const details = { capacity: 1, place: 'Room 1', endsAt: '2030-03-31T10:00:00+02:00', onlineUrl }
  t.equal((await admin.inject('PUT', `/agenda/${id}`, details)).statusCode, 200)
  for (const who of [ada, bob]) await who.inject('POST', `/events/${id}/register`)
  const path: string = (await bob.inject('POST', '/me/calendar')).json().calendar.path
  const own = async () => {
    const { calendar, events } = await readCalendar(t, path)
    t.strictSame(events.map(({ hours, url }) => [hours, url]), events.map(() =>
      [22, `https://app.example.org/events/${id}`]), 'an end by the clock, over a change to summer time')
    return calendar.getAllSubcomponents('vevent').map(event =>
      ['status', 'location', 'dtend', 'duration'].map(name => event.getFirstPropertyValue(name)?.toString()))
  }
  const common = ['Room 1', '2030-03-31T08:00:00Z', undefined]
  const [waiting] = (await readCalendar(t, path)).events
  t.strictSame(await own(), [['TENTATIVE', ...common]])
  t.notMatch(waiting!.description, 'https:')
  await ada.inject('PUT', `/me/seats/${id}`, { coming: false })
  t.strictSame(await own(), [[undefined, ...common]], 'a seat')
  const { calendar, events: [seated] } = await readCalendar(t, path)
  t.ok(seated!.lastModified > waiting!.lastModified && seated!.stamp > waiting!.stamp,
    'an app that keeps entries with an equal time updates this one')
  t.equal(seated!.description, 'Join online: https://meet.example.org/\n\nCome and see', 'only with a seat')
  t.equal(calendar.getFirstSubcomponent('vevent')!.getFirstPropertyValue('conference'), 'https://meet.example.org/')
  t.notMatch(await read(t, '/feeds/events.ics', 'text/calendar; charset=utf-8'), 'meet.example.org')
  await bob.inject('PUT', `/me/seats/${id}`, { coming: false })
  t.strictSame(await own(), [], 'declined')
  t.equal((await readCalendar(t, '/feeds/events.ics')).events.length, 1)
})

t.test('Feeds have the first 4,000 characters of a long text', async t => {
  await empty()
  const texts = ['😀'.repeat(4000), `${'x'.repeat(4000)}y`]
  const [short, long] = [texts[0], `${'x'.repeat(4000)}…`]
  const club = await addClub()
  await addEvents(texts.map((text, n) => ({ club_id: club, title: text, description: text, date: new Date(n) })))
  const { events } = await readCalendar(t, '/feeds/events.ics')
  t.strictSame(events.map(({ description }) => description), [short, long])
  t.strictSame(events.map(({ summary }) => summary), [short, long])
  const { id } = await person(app)
  await addBlogs(texts.map((content, n) => ({ author_id: id, content, created_at: new Date(-n) })))
  const { entries } = await readFeed(t)
  t.strictSame(entries.map(entry => textOf(entry, 'content')), [short, long].map(text => `<p dir="auto">${text}</p>`))
})

t.test('GET /feeds/events.ics has events from 1900 to 9999, sorted', async t => {
  await empty(bare)
  const club = await addClub({}, bare)
  const dates = ['1900-01-01T00:00:00Z', '1969-12-31T23:59:59Z', '2026-10-25T01:30:00Z', '9999-12-31T20:59:59Z']
  const all = ['0001-01-01T00:00:00Z', '1899-12-31T23:59:59Z', ...dates]
  await addEvents(all.toReversed().map(date => ({ club_id: club, date: new Date(date) })), bare)
  const { events } = await readCalendar(t, '/feeds/events.ics', bare)
  t.strictSame(events.map(({ start }) => start), dates)
  t.strictSame(events.map(({ url }) => url), dates.map(() => null), 'no links without a frontend')
})

t.test('GET /feeds/events.ics has all of many events', async t => {
  await empty(bare)
  const club = await addClub({}, bare)
  const ids = await addEvents(Array.from({ length: 1001 }, () => ({ club_id: club })), bare)
  const { events } = await readCalendar(t, '/feeds/events.ics', bare)
  t.strictSame(events.map(({ uid }) => uid).sort(), ids.sort())
})

t.test('GET /feeds/clubs/:id.ics is a calendar of the events of a club', async t => {
  await empty()
  const [chess, go, idle] = [await addClub({ name: 'Chess' }), await addClub(), await addClub({ name: 'Idle\nfolk' })]
  const [id] = await addEvents([{ club_id: chess }, { club_id: go }])
  const { name, events } = await readCalendar(t, `/feeds/clubs/${chess}.ics`)
  t.equal(name, 'Chess')
  t.strictSame(events.map(({ uid }) => uid), [id])
  const empties = await readCalendar(t, `/feeds/clubs/${idle}.ics`)
  t.strictSame([empties.name, empties.events], ['Idle folk', []])
  t.strictSame(empties.calendar.getAllSubcomponents().map(({ name }) => name), ['vtimezone'],
    'a calendar has a component (RFC 5545, § 3.6)')
})

t.test('GET /feeds/blogs.atom is a feed of the newest fifty published blogs', async t => {
  await empty()
  const ada = await person(app, 'STUDENT', { email: 'nobody-reads@example.org', first_name: '<Ada>', last_name: '&c' })
  const time = (n: number) => new Date(Date.UTC(2026, 0, 1, 0, n))
  const ids = await addBlogs(Array.from({ length: 52 }, (_, n) =>
    ({ author_id: ada.id, title: `Blog ${n}`, created_at: time(n), updated_at: time(100 - n) })))
  await addBlogs(['DRAFT', 'ARCHIVED'].map(status => ({ author_id: ada.id, status })))

  const { body, feed, entries } = await readFeed(t)
  t.match(feed, { name: 'feed', attributes: { xmlns: 'http://www.w3.org/2005/Atom' } })
  t.equal(textOf(feed, 'id'), 'https://app.example.org/blogs')
  t.ok(textOf(feed, 'title'))
  t.equal(textOf(feed, 'updated'), time(98).toISOString(), 'the latest change')
  t.strictSame(feed.children.filter(({ name }) => name === 'link').map(({ attributes }) => attributes), [
    { rel: 'alternate', href: 'https://app.example.org/blogs' },
    { rel: 'self', type: 'application/atom+xml', href: 'https://api.example.org/feeds/blogs.atom' },
  ])
  t.strictSame(entries.map(entry => textOf(entry, 'id')), ids.slice(2).reverse().map(id => `urn:uuid:${id}`))
  const [newest] = entries as [Element]
  t.equal(textOf(newest, 'title'), 'Blog 51')
  t.equal(textOf(newest, 'published'), time(51).toISOString())
  t.equal(textOf(newest, 'updated'), time(49).toISOString())
  t.equal(textOf(newest, 'author', 'name'), '<Ada> &c')
  t.strictSame(childOf(newest, 'link')?.attributes, {
    rel: 'alternate', href: `https://app.example.org/blogs/${ids[51]}`,
  })
  t.match(childOf(newest, 'content'), { attributes: { type: 'html' }, text: '<p dir="auto">Content</p>' })
  t.notMatch(body, '@', 'no email')
})

t.test('GET /feeds/blogs.atom keeps the paragraphs of a post, and escapes what looks like HTML', async t => {
  await empty()
  const { id } = await person(app)
  await addBlogs([{ author_id: id, content: '\n\nOne & <b>two</b>,\r\nthree.\n \n\nשלום\n' }])
  const { entries: [entry] } = await readFeed(t)
  t.equal(textOf(entry!, 'content'),
    '<p dir="auto">One &amp; &lt;b&gt;two&lt;/b&gt;,<br>three.</p><p dir="auto">שלום</p>')
})

t.test('GET /feeds/blogs.atom is in the order of first publication, so a late approval comes first', async t => {
  await empty()
  const [ada, admin] = [await person(app), await person(app, 'ADMIN')]
  const long = new Date('2020-01-01T00:00:00.000Z')
  const [old] = await addBlogs([{ author_id: ada.id, created_at: long }])
  await addBlogs(Array.from({ length: 47 }, () => ({ author_id: ada.id, created_at: new Date('2026-01-01') })))
  const [late] = await addBlogs([{ author_id: ada.id, status: 'DRAFT', created_at: long }])

  const published = async (id: string) => {
    const { entries } = await readFeed(t)
    const index = entries.findIndex(entry => textOf(entry, 'id') === `urn:uuid:${id}`)
    return [index, index < 0 ? undefined : textOf(entries[index]!, 'published')]
  }
  t.strictSame(await published(old!), [47, long.toISOString()])
  t.strictSame(await published(late!), [-1, undefined], 'a draft')
  await admin.inject('POST', `/blogs/${late}/approve`)
  const [index, time] = await published(late!)
  t.equal(index, 0)
  t.ok(Math.abs(Date.now() - Date.parse(String(time))) < 60_000, String(time))

  await addBlogs([{ author_id: ada.id }])
  for (const [id, place] of [[late, [1, time]], [old, [49, long.toISOString()]]] as const) {
    await admin.inject('POST', `/blogs/${id}/archive`)
    t.strictSame(await published(id!), [-1, undefined], 'archived')
    await admin.inject('POST', `/blogs/${id}/approve`)
    t.strictSame(await published(id!), place, 'published again')
    await admin.inject('PUT', `/blogs/${id}`, { title: 'Another title' })
    t.strictSame(await published(id!), place, 'changed')
  }
})

t.test('GET /feeds/blogs.atom only links to itself without a frontend, and has no entries without blogs', async t => {
  await empty(bare)
  const { feed, entries } = await readFeed(t, bare)
  t.strictSame(entries, [])
  t.match(textOf(feed, 'updated'), /Z$/)
  t.match(textOf(feed, 'id'), /^urn:uuid:/)
  const ada = await person(bare)
  await addBlogs([{ author_id: ada.id, content: '' }], bare)
  const { body, entries: [entry] } = await readFeed(t, bare)
  t.equal(textOf(entry!, 'content'), '')
  t.strictSame(body.match(/<link[^>]*>/g), [
    '<link rel="self" type="application/atom+xml" href="http://localhost:80/feeds/blogs.atom"/>',
  ])
})

t.test('GET /feeds/blogs.atom has no links in production without PUBLIC_URL', async t => {
  const { body } = await readFeed(t, await build(t, { NODE_ENV: 'production', DATABASE_URL: bare.config.DATABASE_URL }))
  t.notMatch(body, '<link')
})

/** Texts that formats may misinterpret, without NUL and lone surrogates, which PostgreSQL cannot store. */
const text = fc.array(fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 120 }) },
  fc.constantFrom(',', ';', ':', '"', '^n', '\\', '\\n', '\\N', '\\,', '\\;', '\\\\', '\n', '\r', '\r\n', '\r\n ',
    '\r\nEND:VEVENT\r\n', '\t', ' ', '\x01', '\x07', '\x1b[2J', '\x7f', '\x85', '\u2028', '\ufeff', '\uffff',
    '👩‍👩‍👧‍👦', 'שלום', '\u202eabc', 'é'.repeat(80),
    '😀'.repeat(40), 'x'.repeat(200), ']]>', '<script>alert(1)</script>', '&amp;', '&#0;', '<![CDATA[', '<!--', '-->',
    '__proto__', '{{x}}', 'BEGIN:VALARM')
), { maxLength: 6 }).map(parts => parts.join('').replaceAll('\0', ''))

/** The text that a reader shows of the HTML in an entry. Throws unless it is well-formed, apart from line breaks. */
function shownOf (entry: Element) {
  const { children } = parseXml(`<div>${textOf(entry, 'content')!.replaceAll('<br>', '\n')}</div>`)
  return children.map(({ text }) => text).join('\n\n')
}

/** The text on one line, without control characters. */
const plain = (text: string) =>
  text.replace(/\r\n?|[\u2028\u2029]/g, '\n').replace(/[^\P{Cc}\t\n]|[\uFFFE\uFFFF]/gu, '')
const line = (text: string) => plain(text).replace(/\s+/g, ' ').trim()

const RUNS = 60

t.test('Calendars preserve any text', async t => {
  const date = fc.date({ noInvalidDate: true, min: new Date('1900-01-01'), max: new Date('9999-12-31T21:00:00Z') })
  const event = fc.record({ title: text, description: text, date })
  await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 5 }), text, async (events, name) => {
    await empty()
    const club = await addClub({ name })
    const ids = await addEvents(events.map(event => ({ ...event, club_id: club })))
    const { name: title, events: found } = await readCalendar(t, `/feeds/clubs/${club}.ics`)
    t.equal(title, line(name))
    const sorted = (events: { uid: string }[]) => events.sort((one, other) => one.uid < other.uid ? -1 : 1)
    t.strictSame(
      sorted(found.map(({ uid, summary, description, start, organizer }) =>
        ({ uid, summary, description, start, organizer }))),
      sorted(events.map(({ title, description, date }, n) => ({
        uid: ids[n]!,
        summary: line(title),
        description: plain(description),
        start: `${date.toISOString().slice(0, 19)}Z`,
        // ical.js unescapes \\n, \\, and the like here, although a parameter has only ^n, ^' and ^^ (RFC 6868).
        organizer: line(name).replace(/\\([nN,;\\])/g, (_, escaped) => /n/i.test(escaped) ? '\n' : escaped),
      }))))
    if (!t.passing()) throw new Error('A parser read another text')
  }), { numRuns: RUNS })
})

t.test('Feeds preserve any text', async t => {
  const blog = fc.record({ title: text, content: text })
  await fc.assert(fc.asyncProperty(fc.array(blog, { maxLength: 5 }), text, async (blogs, name) => {
    await empty()
    const author = await person(app, 'STUDENT', { first_name: name })
    const ids = await addBlogs(blogs.map((blog, n) => ({ ...blog, author_id: author.id, created_at: new Date(-n) })))
    const { entries } = await readFeed(t)
    t.strictSame(
      entries.map(entry =>
        [textOf(entry, 'id'), textOf(entry, 'title'), line(shownOf(entry)), textOf(entry, 'author', 'name')]),
      blogs.map(({ title, content }, n) =>
        [`urn:uuid:${ids[n]}`, line(title), line(content), line(`${name} Lovelace`)]))
    if (!t.passing()) throw new Error('A parser read another text')
  }), { numRuns: RUNS })
})
