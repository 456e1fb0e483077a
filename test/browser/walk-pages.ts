// What the pages of the example app say: numbers, times, names, notices, search and print.
import { readdir, readFile } from 'node:fs/promises'

import type { Response } from 'playwright-core'

import { entry, notified, PASSWORD, startExample } from '../example.ts'
import t from '../suite.ts'

const { api, origin, sql, walk, signIn, tokenOf, send } = await startExample({ MAIL_TIME_ZONE: 'Europe/Berlin' })

const head = await tokenOf('head@demo.example.org')

/** Creates an event, and registers people for it. Returns its id. */
async function newEvent (title: string, capacity: number | null, people: string[]) {
  const { event: { id } } = await send('POST', '/events', head, {
    title, description: 'A talk in a room', data: '2031-05-01T18:00:00Z', imageUrl: 'data:image/png,',
  })
  if (capacity !== null) await send('PUT', `/agenda/${id}`, head, { capacity })
  for (const person of people) {
    await send('POST', `/events/${id}/register`, await tokenOf(`${person}@demo.example.org`), {})
  }
  return id as string
}

t.test('The page preloads every module', async t => {
  const html = await (await fetch(origin)).text()
  const preloaded = [...html.matchAll(/rel="modulepreload" href="([^"]+)"/g)].map(([, path]) => path)
  const app = 'examples/spa/app'
  const modules = (await readdir(app, { recursive: true })).filter(name => name.endsWith('.js'))
    .map(name => `/${name.replaceAll('\\', '/')}`)
  const others = ['/config.js', '/client/index.js', '/openapi-fetch/index.mjs']
  t.strictSame(preloaded.toSorted(), [...modules, ...others].filter(path => path !== '/main.js').sort())
  t.match(await readFile(`${app}/index.html`, 'utf8'), /importmap[^]*modulepreload/, 'the import map comes first')
})

walk('People who cannot come are not counted, and people who wait are', {}, async (_t, page) => {
  const id = await newEvent('A small room', 1, ['noor', 'student', 'admin'])
  await page.goto(`${origin}/events/${id}`)
  await page.getByText('3 people registered').waitFor()
  await page.getByText('Full: 2 people are waiting').waitFor()
  await send('PUT', `/me/seats/${id}`, await tokenOf('student@demo.example.org'), { coming: false })
  await page.reload()
  await page.getByText('2 people registered').waitFor()
  await page.getByText('Full: 1 person is waiting').waitFor()
})

walk('A visitor who presses Register is registered after the sign-up', {}, async (t, page) => {
  const id = await newEvent('An open evening', null, [])
  await page.goto(`${origin}/events/${id}`)
  await page.getByRole('button', { name: 'Register' }).click()
  await page.getByRole('link', { name: 'Sign up' }).last().click()
  await page.getByLabel('First name').fill('Eva')
  await page.getByLabel('Last name').fill('Nováková')
  await page.getByLabel('Email').fill('eva@example.org')
  await page.getByLabel('Password').fill('correct horse battery')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.getByText("✓ You're registered.").waitFor()
  t.equal(page.url(), `${origin}/events/${id}`)

  await page.getByRole('button', { name: "I can't come" }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('You can change your mind later.', { exact: true }).waitFor()
  await dialog.getByRole('button', { name: 'Keep my place' }).click()
  await page.getByText("✓ You're registered.").waitFor()

  const other = await newEvent('A link from elsewhere', null, [])
  await page.goto(`${origin}/events/${other}?wish=1-2-3-4`)
  await page.getByRole('button', { name: 'Register' }).waitFor()
  const [{ count }] = await sql<[{ count: string }]>`
    SELECT count(*) FROM event_registrations WHERE event_id = ${other}
  `
  t.equal(count, '0', 'a link does not register anybody')
})

walk('A visitor who presses Register, and signs up after registration has closed, reads so', {
  refusals: ['POST /events/{id}/register 400'],
}, async (_t, page) => {
  const id = await newEvent('A short time', null, [])
  await page.goto(`${origin}/events/${id}`)
  await page.getByRole('button', { name: 'Register' }).click()
  await send('PUT', `/agenda/${id}`, await tokenOf('admin@demo.example.org'), { closesAt: new Date().toISOString() })
  await page.getByLabel('Email').fill('student@demo.example.org')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('alert').getByText('Registration for this event has closed').waitFor()
})

walk('The browser of a visitor does not get the names and addresses of members', {}, async (t, page) => {
  const bodies: Promise<string>[] = []
  const read = (response: Response) => {
    if (response.url().startsWith(api) && response.request().resourceType() === 'fetch') bodies.push(response.text())
  }
  page.on('response', read)
  await page.getByRole('link', { name: 'Clubs', exact: true }).click()
  await page.getByRole('link', { name: 'Robotics Workshop' }).click()
  await page.getByText('Head of the club').waitFor()
  // A response that comes while the page closes cannot be read.
  page.off('response', read)
  t.ok(bodies.length > 0)
  for (const body of await Promise.all(bodies)) t.notMatch(body, /Nkechi Obi|@demo/)
})

walk('A time has no zone where the clocks of the community are', {}, async (t, page) => {
  t.notMatch(await page.locator('.agenda time').first().textContent(), /GMT|CES?T/)
})

walk('A time names its zone elsewhere', { timezoneId: 'America/New_York' }, async (t, page) => {
  t.match(await page.locator('.agenda time').first().textContent(), /E[SD]T|GMT/)
})

walk('Search ignores diacritics and the order of words, and a notice can be closed', {}, async (t, page) => {
  await sql`UPDATE users SET first_name = 'Jana', last_name = 'Nováková' WHERE email LIKE 'noor@%'`
  await signIn(page, 'admin', { to: '/admin/users' })
  const notice = page.locator('#notices')
  await notice.getByRole('button', { name: 'Close' }).click()
  t.equal(await notice.textContent(), '')
  for (const [typed, name] of [['novakova', 'Jana Nováková'], ['obi nkechi', 'Nkechi Obi']] as const) {
    await page.getByLabel('Find by name or email').fill(typed)
    await entry(page, name).waitFor()
  }
  await entry(page, 'Nkechi Obi').getByRole('button', { name: 'Role' }).click()
  t.equal(await page.evaluate("document.querySelector('dialog').contains(document.querySelector('#notices'))"), true)
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.locator('body > #notices').waitFor({ state: 'attached' })
})

walk('A refusal says when to try again', { refusals: ['POST /auth/login 429'] }, async (_t, page) => {
  await page.route('**/auth/login', route => route.fulfill({
    status: 429,
    headers: {
      'retry-after': '840',
      'access-control-allow-origin': origin,
      'access-control-expose-headers': 'Retry-After',
      'content-type': 'application/json',
    },
    body: '{"message": "Too many failed sign-ins, please try again later"}',
  }))
  await page.goto(`${origin}/sign-in`)
  await page.getByLabel('Email').fill('student@demo.example.org')
  await page.getByLabel('Password').fill('wrong password')
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByText('Try again in 14 minutes.').waitFor()
})

walk('A printed page keeps its numbers, and buttons are named as they read', {}, async (t, page) => {
  const id = await newEvent('On paper', null, ['noor'])
  await signIn(page, 'head', { to: `/manage/${id}` })
  await page.getByRole('button', { name: /^Take off / }).waitFor()
  await page.emulateMedia({ media: 'print' })
  t.equal(await page.getByText('State', { exact: true }).isVisible(), true)
  t.equal(await page.getByText('Action', { exact: true }).isVisible(), false)
  await page.goto(`${origin}/manage`)
  await entry(page, 'On paper').getByText('1 registration').waitFor()
  await page.emulateMedia({ media: 'screen' })
  await page.getByRole('link', { name: 'My events' }).waitFor()
})

walk('A picture can be deleted', {}, async (t, page) => {
  await signIn(page, 'student', { to: '/me/settings' })
  const { data } = await page.evaluate<{ data: number[] }>(`new Promise(resolve => {
    const canvas = document.createElement('canvas')
    canvas.getContext('2d').fillRect(0, 0, 9, 9)
    canvas.toBlob(async blob => resolve({ data: [...new Uint8Array(await blob.arrayBuffer())] }))
  })`)
  await page.getByLabel('Choose a picture: New picture')
    .setInputFiles({ name: 'me.png', mimeType: 'image/png', buffer: Buffer.from(data) })
  await notified(page, 'Your picture has been saved.')
  await page.getByRole('button', { name: 'My earlier pictures' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  const question = page.getByRole('dialog', { name: 'Delete this picture?' })
  await question.getByText('It is still shown: avatar').waitFor()
  await question.getByRole('button', { name: 'Delete' }).click()
  await notified(page, 'The picture has been deleted.')
  t.equal(await page.locator('.pictures li').count(), 0)
})
