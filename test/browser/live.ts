// Pages of the example app change while a person looks at them, and nothing moves.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Locator, Page } from 'playwright-core'
import type { Test } from 'tap'

import { entry, follow, startExample, watchStreams } from '../example.ts'

const { api, origin, sql, walk, signIn, tokenOf, send } = await startExample()
const tokens = await Promise.all(['student', 'head', 'admin'].map(name => tokenOf(`${name}@demo.example.org`)))
const [student, head, admin] = tokens as [string, string, string]

/** Waits until an element has a text, without any action of the user. */
async function hasText (locator: Locator, text: string | RegExp) {
  await locator.filter({ hasText: text }).waitFor({ timeout: 5000 })
}

/** A proxy that can freeze: it passes nothing on and closes nothing, but it accepts new connections. */
async function freezable (t: Test) {
  const sockets = new Set<Socket>()
  const proxy = createServer(client => {
    const service = connect(Number(new URL(api).port), 'localhost')
    client.pipe(service).pipe(client)
    for (const socket of [client, service]) sockets.add(socket.on('error', () => {}))
  }).listen(0, 'localhost')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    proxy.close()
  })
  await once(proxy, 'listening')
  const freeze = () => { for (const socket of sockets) socket.unpipe().pause() }
  return { url: `http://localhost:${(proxy.address() as AddressInfo).port}`, freeze }
}

/** The places of elements on the screen. */
const places = (page: Page, selector: string) => page.evaluate<string>(`JSON.stringify(
  [...document.querySelectorAll('${selector}')].map(element => Object.values(element.getBoundingClientRect().toJSON()))
)`)

walk('Likes move while one looks, and a new mentor is offered', {}, async (t, page) => {
  await follow(page, 'Mentors')
  const likes = entry(page, 'Zanele Khumalo').getByRole('button')
  await hasText(likes, '0 likes for Zanele Khumalo')
  const [{ id, club_id: clubId }] = await sql<[{ id: string, club_id: string }]>`
    SELECT id, club_id FROM mentors WHERE name = 'Zanele Khumalo'
  `
  const before = await places(page, '.person')
  await send('POST', `/mentors/${id}/like`, student, {})
  await hasText(likes, '1 like for Zanele Khumalo')
  t.equal(await places(page, '.person'), before)
  t.equal(await likes.getAttribute('aria-pressed'), 'false', 'this visitor does not like her')

  await send('POST', '/mentors', admin, {
    name: 'Dorothy Vaughan',
    expertise: 'Fortran',
    clubId,
    imageUrl: 'https://images.example.org/dorothy.jpg',
    networkUrl: 'https://example.org/dorothy',
  })
  const hint = page.getByText('This page has changed.')
  await hint.waitFor({ timeout: 5000 })
  t.equal(await places(page, '.person'), before, 'nothing moves')
  await page.getByRole('button', { name: 'Show' }).click()
  await entry(page, 'Dorothy Vaughan').waitFor()
  t.equal(await hint.isVisible(), false)
})

walk('Registrations move on the start page, in the list and on the page of a club', {}, async (t, page) => {
  const [event] = await sql<[{ id: string, title: string, club_id: string }]>`
    SELECT id, title, club_id FROM events WHERE date > now() ORDER BY date LIMIT 1
  `
  const line = page.locator('.agenda li').first()
  const going = async () => Number(/\d+/.exec((await line.locator('.going').textContent())!)![0])
  const first = await going()
  const before = await places(page, '.agenda li')
  await sql`INSERT INTO event_registrations (user_id, event_id)
    SELECT id, ${event.id} FROM users WHERE email = 'admin@demo.example.org'`
  await hasText(line, `${first + 1} registered`)
  t.equal(await places(page, '.agenda li'), before)

  await page.goto(`${origin}/events`)
  await hasText(page.locator('.events > li').first(), `${first + 1} people registered`)
  await sql`INSERT INTO event_registrations (user_id, event_id)
    SELECT id, ${event.id} FROM users WHERE email = 'student@demo.example.org'`
  await hasText(page.locator('.events > li').first(), `${first + 2} people registered`)

  await page.goto(`${origin}/clubs/${event.club_id}`)
  await hasText(line, `${first + 2} registered`)
  await sql`DELETE FROM event_registrations WHERE event_id = ${event.id} AND user_id IN (
    SELECT id FROM users WHERE email IN ('admin@demo.example.org', 'student@demo.example.org'))`
  await hasText(line, `${first} registered`)
  t.equal(await page.getByText('This page has changed.').isVisible(), false)
})

walk('Posts, testimonials and clubs that change are offered', {}, async (t, page) => {
  const hint = page.getByText('This page has changed.')
  const { upToDate } = watchStreams(page)
  for (const [name, list, change] of [
    ['Blog', '/blogs', () => sql`UPDATE blogs SET title = title || '!' WHERE status = 'PUBLISHED'`],
    ['Testimonials', '/testimonials', () => sql`UPDATE testimonials SET content = content || '!'`],
    ['Clubs', '/club-pages', () => sql`UPDATE clubs SET description = description || '!'`],
  ] as const) {
    await follow(page, name)
    await upToDate(list)
    t.equal(await hint.isVisible(), false, name)
    await change()
    await hint.waitFor({ timeout: 5000 })
    await page.getByRole('button', { name: 'Show' }).click()
    await hint.waitFor({ state: 'detached' })
  }
})

walk('A page has one stream, and none in a hidden tab', {}, async (t, page) => {
  const streams = watchStreams(page)
  for (const [name, list] of [
    ['Events', '/agenda'], ['Clubs', '/club-pages'], ['Mentors', '/mentors'], ['Blog', '/blogs'],
  ] as const) {
    await follow(page, name)
    await streams.upToDate(list)
    t.equal(streams.count(), 1, name)
  }
  t.match(streams.seen.at(-1), /\/live\?list=%2Fblogs$/)

  const hide = (isHidden: boolean) => page.evaluate(`
    Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  `)
  await hide(true)
  await streams.closed()
  await sql`UPDATE blogs SET title = title || '?' WHERE status = 'PUBLISHED'`
  await hide(false)
  await page.getByText('This page has changed.').waitFor({ timeout: 5000 })
  t.equal(streams.count(), 1, 'shown again')
  await page.getByRole('link', { name: 'Sign in' }).first().click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await streams.closed()
})

walk('The page of an event moves while one looks, and a different seat is offered', {
  refusals: ['GET /agenda/{id} 404'],
}, async (t, page) => {
  const [{ id, club_id: clubId, date }] = await sql<[{ id: string, club_id: string, date: Date }]>`
    INSERT INTO events (title, description, image_url, date, club_id)
    SELECT 'Quiz', 'Questions', 'https://images.example.org/quiz.jpg', now() + interval '10 days', id
    FROM clubs LIMIT 1 RETURNING *
  `
  await sql`
    INSERT INTO event_details (event_id, capacity, online_url) VALUES (${id}, 1, 'https://meet.example.org/quiz')
  `
  // A different event of the club runs at the same time.
  await sql`
    WITH event AS (
      INSERT INTO events (title, description, image_url, date, club_id)
      VALUES ('Fair', 'Stands', 'https://images.example.org/fair.jpg', ${date}::timestamptz - interval '1 hour', ${clubId})
      RETURNING id
    ) INSERT INTO event_details (event_id, duration_ms) SELECT id, 3 * 3600000 FROM event
  `
  const { upToDate } = watchStreams(page)
  await page.goto(`${origin}/events/${id}`)
  await page.getByRole('button', { name: 'Register' }).waitFor()
  await upToDate('/agenda')
  await send('POST', `/events/${id}/register`, head, {})
  await page.getByText('1 person registered').waitFor({ timeout: 5000 })
  await page.getByRole('button', { name: 'Stand in line' }).waitFor({ timeout: 5000 })
  const hint = page.getByText('This page has changed.')
  t.equal(await hint.isVisible(), false)

  await send('POST', `/events/${id}/register`, admin, {})
  await signIn(page, 'student', { to: `/events/${id}` })
  await page.getByRole('button', { name: 'Stand in line' }).click()
  const seat = page.locator('.seat')
  await hasText(seat, 'You are number 2 in line.')
  await upToDate('/agenda')
  const before = await places(page, '.seat button')
  const leave = (name: string) => sql`
    DELETE FROM event_registrations
    WHERE event_id = ${id} AND user_id = (SELECT id FROM users WHERE email = ${`${name}@demo.example.org`})
  `
  await leave('admin')
  await hasText(seat, 'You are number 1 in line.')
  t.equal(await places(page, '.seat button'), before, 'the button stays under the finger')
  t.equal(await hint.isVisible(), false)

  await leave('head')
  await hasText(seat, 'You have a seat.')
  await page.getByRole('link', { name: 'https://meet.example.org/quiz' }).waitFor()
  t.equal(await seat.getByRole('status').textContent(), '✓ You have a seat.', 'screen readers announce it')
  t.equal(await places(page, '.seat button'), before, 'the button stays under the finger')
  t.equal(await hint.isVisible(), false)

  await send('DELETE', `/events/${id}`, admin, {})
  await hint.waitFor({ timeout: 5000 })
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
})

walk('Past events and a blog post change while one looks', {}, async (t, page) => {
  const streams = watchStreams(page)
  const [{ id, date }] = await sql<[{ id: string, date: Date }]>`
    INSERT INTO events (title, description, image_url, date, club_id)
    SELECT 'Old quiz', 'Questions', 'https://images.example.org/quiz.jpg', now() - interval '1 day', id
    FROM clubs LIMIT 1 RETURNING *
  `
  await page.goto(`${origin}/events?year=${date.getFullYear()}`)
  const card = entry(page, 'Old quiz')
  await hasText(card, 'Nobody has registered yet')
  t.match(decodeURIComponent(streams.seen.at(-1)!), /&to=[-\d]+T..%3A00%3A00/, 'visitors share the list')
  await sql`INSERT INTO event_registrations (user_id, event_id)
    SELECT id, ${id} FROM users WHERE email = 'admin@demo.example.org'`
  await hasText(card, '1 person registered')
  await sql`INSERT INTO event_answers (registration_id, event_id)
    SELECT id, event_id FROM event_registrations WHERE event_id = ${id}`
  await hasText(card, 'Everybody has cancelled')
  const hint = page.getByText('This page has changed.')
  t.equal(await hint.isVisible(), false)
  await sql`UPDATE events SET title = 'Very old quiz' WHERE id = ${id}`
  await hint.waitFor({ timeout: 5000 })
  await page.getByRole('button', { name: 'Show' }).click()
  await entry(page, 'Very old quiz').waitFor()

  await follow(page, 'Blog')
  await page.locator('.cards h2 a').first().click()
  await page.locator('article.reading').waitFor()
  await streams.upToDate('/blogs')
  t.equal(await hint.isVisible(), false)
  await sql`UPDATE blogs SET content = content || ' New words.' WHERE status = 'PUBLISHED'`
  await hint.waitFor({ timeout: 5000 })
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByText('New words.').waitFor()
})

walk('A page that arrives late does not end the updates of the page that is shown', {}, async (t, page) => {
  await follow(page, 'Events')
  let answer = () => {}
  const late = new Promise<void>(resolve => { answer = resolve })
  await page.route(`${api}/agenda/*`, async route => {
    await late
    await route.continue()
  })
  await page.locator('.events h2 a').first().click()
  await follow(page, 'Mentors')
  const arrived = page.waitForResponse(response => response.url().startsWith(`${api}/agenda/`))
  answer()
  await arrived
  // The late page is not shown.
  await sleep(200)
  const likes = entry(page, 'Zanele Khumalo').getByRole('button')
  const before = Number.parseInt((await likes.textContent())!)
  await sql`
    INSERT INTO mentor_likes (mentor_id, user_id)
    SELECT mentors.id, users.id FROM mentors, users
    WHERE name = 'Zanele Khumalo' AND email = 'noor@demo.example.org'
  `
  await hasText(likes, `${before + 1} like`)
  t.equal(await page.textContent('h1'), 'Mentors')
})

walk('A page whose update fails tries again', { refusals: ['GET /mentors failed'] }, async (_t, page) => {
  const { upToDate } = watchStreams(page)
  await follow(page, 'Mentors')
  const likes = entry(page, 'Zanele Khumalo').getByRole('button')
  await upToDate('/mentors')
  const before = Number.parseInt((await likes.textContent())!)
  await page.route(`${api}/mentors`, route => route.abort('internetdisconnected'), { times: 1 })
  await sql`
    INSERT INTO mentor_likes (mentor_id, user_id)
    SELECT mentors.id, users.id FROM mentors, users
    WHERE name = 'Zanele Khumalo' AND email = 'head@demo.example.org'
  `
  await page.waitForEvent('requestfailed')
  await likes.filter({ hasText: `${before + 1} like` }).waitFor({ timeout: 10_000 })
})

walk('A page behind a connection that freezes is live again within a minute', { bypassCSP: true }, async (t, page) => {
  const { url, freeze } = await freezable(t)
  await page.route('**/config.js', async route => {
    const response = await route.fetch()
    await route.fulfill({ response, body: (await response.text()).replace(api, url) })
  })
  await page.clock.install()
  await page.goto(origin)
  const { upToDate } = watchStreams(page)
  await follow(page, 'Mentors')
  const likes = entry(page, 'Zanele Khumalo').getByRole('button')
  await upToDate('/mentors')
  const before = Number.parseInt((await likes.textContent())!)
  freeze()
  await sql`
    INSERT INTO mentor_likes (mentor_id, user_id)
    SELECT mentors.id, users.id FROM mentors, users
    WHERE name = 'Zanele Khumalo' AND email = 'admin@demo.example.org'
  `
  // The browser also tries the idle connections that are frozen.
  const isLive = (timeout: number) => likes.filter({ hasText: `${before + 1} like` }).waitFor({ timeout })
    .then(() => true, () => false)
  // An update takes 0.7 s.
  t.notOk(await isLive(1000))
  let seconds = 30
  await page.clock.fastForward(30_000)
  // A slow machine needs longer than the clock of the page tells.
  while (!await isLive(seconds < 55 ? 3000 : 20_000) && seconds < 60) {
    await page.clock.fastForward(5000)
    seconds += 5
  }
  t.ok(seconds < 60, `${seconds} seconds`)
})

walk('Organizers and members see who registers while they look', {}, async (t, page) => {
  const [{ id }] = await sql<[{ id: string }]>`
    INSERT INTO events (title, description, image_url, date, club_id)
    SELECT 'Door test', 'Come in', 'https://images.example.org/door.jpg', now() + interval '1 hour', club_id
    FROM users WHERE email = 'head@demo.example.org' RETURNING id
  `
  const coming = (coming: boolean) => send('PUT', `/me/seats/${id}`, admin, { coming })
  await send('POST', `/events/${id}/register`, student, {})
  const { upToDate } = watchStreams(page)
  await signIn(page, 'head', { to: '/manage' })
  const row = entry(page, 'Door test')
  await hasText(row, '1 registration')
  await upToDate('/agenda?club')
  await send('POST', `/events/${id}/register`, admin, {})
  await hasText(row, '2 registrations')
  const hint = page.getByText('This page has changed.')
  t.equal(await hint.isVisible(), false)

  await page.goto(`${origin}/manage/${id}`)
  const rows = page.locator('tbody tr')
  await rows.nth(1).waitFor()
  await upToDate('/agenda?')
  await send('POST', `/events/${id}/register`, head, {})
  await rows.nth(2).waitFor({ timeout: 5000 })
  await page.getByText('3 registrations · 3 people come').waitFor()
  await sql`DELETE FROM event_registrations WHERE event_id = ${id}
    AND user_id = (SELECT id FROM users WHERE email = 'student@demo.example.org')`
  await page.getByText('2 registrations · 2 people come').waitFor({ timeout: 5000 })
  await hint.waitFor()
  t.equal(await rows.count(), 3, 'no row moves under a finger')

  await sql`INSERT INTO event_details (event_id, capacity) VALUES (${id}, 1)`
  await page.evaluate('localStorage.clear()')
  await signIn(page, 'admin', { to: '/me' })
  await coming(false)
  await page.reload()
  await entry(page, 'Very old quiz').waitFor()
  await coming(true)
  await hint.waitFor({ timeout: 5000 })
  await page.getByRole('button', { name: 'Show' }).click()
  await hasText(entry(page, 'Door test'), /Number 1 in line/)
})
