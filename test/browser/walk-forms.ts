// Forms of the example app: incomplete fields, seats, the link of an event, and what is said about emails.
import { readFile } from 'node:fs/promises'

import { endOfButtons, entry, notified, startExample, watchStreams } from '../example.ts'

const { api, origin, mails, sql, walk, signIn, tokenOf, send } = await startExample()
const head = await tokenOf('head@demo.example.org')

/** Creates an event with this number of seats. */
async function createEvent (title: string, capacity: number | null, data = '2031-05-01T18:00:00Z') {
  const body = { title, description: 'A talk in the smallest room', data, imageUrl: 'data:image/png,' }
  const { event: { id } } = await send('POST', '/events', head, body)
  await send('PUT', `/agenda/${id}`, head, { capacity })
  return id as string
}

walk('A date or number that is not complete is not saved as empty', {
  refusals: ['POST /agenda/{id}/copies 400', 'POST /agenda/{id}/copies 400'],
}, async (t, page) => {
  await createEvent('Ten seats', 10)
  const dialog = page.getByRole('dialog')
  await signIn(page, 'head', { to: '/manage' })
  await entry(page, 'Ten seats').getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('End').focus()
  await page.keyboard.type('01052031')
  await dialog.getByLabel('Seats').focus()
  await page.keyboard.press('ControlOrMeta+a')
  await page.keyboard.type('1e')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('End must be a complete date and time').waitFor()
  await dialog.getByText('Seats must be a whole number').waitFor()
  await dialog.getByLabel('Seats').fill('2.5')
  t.equal(await dialog.getByText('Seats must be a whole number').count(), 0)
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('Seats must be a whole number').waitFor()
  await dialog.getByLabel('End').fill('2031-05-01T22:30')
  await dialog.getByLabel('Seats').fill('12')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await notified(page, '“Ten seats” has been saved.')

  await entry(page, 'Ten seats').getByRole('button', { name: 'Repeat' }).click()
  const refused = { 1.5: 'must be a whole number', 0: 'must be 1 or more', 60: 'must be 52 or less' }
  for (const [times, words] of Object.entries(refused)) {
    await dialog.getByLabel('How many more times').fill(times)
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText(`How many more times ${words}`).waitFor()
    t.equal(await dialog.locator('.problem').textContent(), 'Please correct the marked fields.')
  }
})

walk('A date is typed without a pause, because its year has four digits', {}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  await signIn(page, 'head', { to: '/manage' })
  await page.getByRole('button', { name: 'New event' }).click()
  for (const label of ['Date and time', 'End']) {
    await dialog.getByLabel(label).focus()
    // Day and month are equal, and the hour is in the morning, because the browser chooses the order and the clock.
    await page.keyboard.type('010120310630AM')
    t.equal(await dialog.getByLabel(label).inputValue(), '2031-01-01T06:30')
  }
  // Some browsers accept more digits.
  await dialog.getByLabel('End').fill('202618-12-31T18:00')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('End must be a complete date and time, with a year of four digits').waitFor()
})

walk('A form that is refused changes nothing', {
  refusals: ['PUT /agenda/{id} 400'],
}, async (t, page) => {
  await createEvent('Before the move', null)
  const dialog = page.getByRole('dialog')
  await signIn(page, 'head', { to: '/manage' })
  await entry(page, 'Before the move').getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Title').fill('After the move')
  await dialog.getByLabel('End').fill('2001-05-01T22:30')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('End must be after the start of the event').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.reload()
  await entry(page, 'Before the move').waitFor()
  t.equal(await entry(page, 'After the move').count(), 0)
})

walk('A newer file of an event replaces an older one in a calendar app', {
  refusals: ['GET /agenda/{id} 404'],
}, async (t, page) => {
  const id = await createEvent('Two files; one event', null)
  const file = async () => {
    await page.goto(`${origin}/events/${id}`)
    const button = page.getByRole('button', { name: 'Add to my calendar' })
    const [saved] = await Promise.all([page.waitForEvent('download'), button.click()])
    t.equal(saved.suggestedFilename(), 'event.ics')
    return readFile(await saved.path(), 'utf8')
  }
  const [before] = [await file(), await send('PUT', `/agenda/${id}`, head, { place: 'Room 1' })]
  const after = await file()
  for (const text of [before, after]) {
    t.match(text, /^BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:.*\r\nBEGIN:VEVENT\r\n/)
    t.match(text, /\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n$/)
    t.equal(text.match(/BEGIN:VEVENT/g)!.length, 1)
    t.match(text, `UID:${id}\r\n`)
    t.match(text, 'SUMMARY:Two files\\; one event\r\n')
  }
  const changes = (text: string) => Number(/^SEQUENCE:(\d+)/m.exec(text)![1])
  t.equal(changes(after), changes(before) + 1)
  t.match(after, 'LOCATION:Room 1\r\n')

  await send('DELETE', `/events/${id}`, head)
  await page.getByText('This page has changed.').waitFor()
  await page.getByRole('button', { name: 'Add to my calendar' }).click()
  await notified(page, 'This event has changed. Please reload the page.')
})

walk('Arrow keys choose one club after the other', {}, async (t, page) => {
  await page.goto(`${origin}/events`)
  const select = page.getByLabel('Club')
  const clubs = await select.locator('option').allTextContents()
  await select.focus()
  for (const club of clubs.slice(1, 3)) {
    const before = page.url()
    await page.keyboard.press('ArrowDown')
    await page.waitForURL(address => address.href !== before)
    await page.locator('main[aria-busy]').waitFor({ state: 'detached' })
    t.equal(await page.evaluate('document.activeElement.selectedOptions?.[0].textContent'), club)
  }
})

walk('Errors go as the fields are corrected', { refusals: ['POST /auth/register 400'] }, async (t, page) => {
  await page.goto(`${origin}/register`)
  await page.getByRole('main').getByRole('button', { name: 'Sign up' }).click()
  await page.getByText('Please correct the marked fields.').waitFor()
  const fields = { 'First name': 'Ada', 'Last name': 'Lovelace', Email: 'ada@example.org', Password: 'correct horse' }
  for (const [place, [label, value]] of Object.entries(fields).entries()) {
    t.equal(await page.locator('.issue:not(:empty)').count(), 4 - place)
    t.ok(await page.locator('.problem').isVisible())
    await page.getByLabel(label).fill(value)
  }
  t.notOk(await page.locator('.problem').isVisible())
})

walk('An event of many hours is one to come on the page of its club, until it ends', {}, async (t, page) => {
  const hours = (number: number) => new Date(Date.now() + number * 3_600_000).toISOString()
  const id = await createEvent('A long night', null, hours(-4))
  await send('PUT', `/agenda/${id}`, head, { endsAt: hours(4) })
  const { event: { clubId } } = await send('GET', `/agenda/${id}`, head)
  await page.goto(`${origin}/clubs/${clubId}`)
  await page.locator('main h1').waitFor()
  const titles = (name: string) => page.locator('section').filter({ has: page.getByRole('heading', { name }) })
    .locator('h3').allTextContents()
  t.ok((await titles('Upcoming events')).includes('A long night'))
  t.notOk((await titles('Past events')).includes('A long night'))
})

walk('A person who registers for a full event is told that they wait', {}, async (t, page) => {
  const id = await createEvent('One chair', 1)
  await signIn(page, 'student', { to: `/events/${id}` })
  // The last seat is taken while the page still shows it.
  await page.getByText('1 of 1 seat left').waitFor()
  await send('POST', `/events/${id}/register`, await tokenOf('noor@demo.example.org'), {})
  await page.getByRole('main').getByRole('button').first().click()
  await notified(page, 'You are number 1 in line for “One chair”.')
  t.match(await page.textContent('.seat'), 'You are number 1 in line.')
})

walk('A person registers once, although a different tab has registered too', {
  refusals: ['POST /events/{id}/register 400'],
}, async (t, page) => {
  const id = await createEvent('Two tabs', null)
  await signIn(page, 'student', { to: `/events/${id}` })
  await send('POST', `/events/${id}/register`, await tokenOf('student@demo.example.org'), {})
  await page.getByRole('button', { name: 'Register' }).click()
  await notified(page, 'You have already registered for this event')
  await page.getByText("✓ You're registered.").waitFor()
  t.equal(await page.getByRole('button', { name: 'Register' }).count(), 0)
})

walk('The link of an event can be copied, and is shown if the browser copies nothing', {
  permissions: ['clipboard-read', 'clipboard-write'],
}, async (t, page) => {
  const id = await createEvent('A link', null)
  await page.goto(`${origin}/events/${id}`)
  await page.getByRole('button', { name: 'Copy the link' }).click()
  await notified(page, 'The link has been copied.')
  t.equal(await page.evaluate('navigator.clipboard.readText()'), `${origin}/events/${id}`)
  // As on a page without HTTPS.
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
  await page.getByRole('button', { name: 'Copy the link' }).click()
  t.equal(await page.getByRole('dialog').getByLabel('Link').inputValue(), `${origin}/events/${id}`)
})

walk('My events begin with the next one', {}, async (t, page) => {
  for (const [title, data] of [['Far', '2031-05-01'], ['Soon', '2029-05-01'], ['Long ago', '2020-05-01']] as const) {
    const id = await createEvent(title, null, data)
    await send('POST', `/events/${id}/register`, await tokenOf('hana@demo.example.org'), {})
  }
  await signIn(page, 'hana', { to: '/me' })
  const titles = await page.locator('.agenda h3').allTextContents()
  t.ok(titles.indexOf('Soon') < titles.indexOf('Far') && titles.at(-1) === 'Long ago', titles.join())
  t.match(await entry(page, 'Long ago').textContent(), 'Over')
})

walk('The app says where emails lie while the service sends none, and which passwords it refuses', {}, async (
  t, page
) => {
  const lies = async () => notified(page, `The service sends no emails yet. They are files in ${mails}.`)
  await page.goto(`${origin}/register`)
  await page.getByText('At least 8 characters. Avoid common passwords: you could not choose one again later.').waitFor()
  await page.goto(`${origin}/forgot-password`)
  await page.getByLabel('Email').fill('student@demo.example.org')
  await page.getByRole('button', { name: 'Send the email' }).click()
  await lies()
  await signIn(page, 'student', { to: '/me/settings' })
  await page.getByText('At least 8 characters, and not a common password.').waitFor()
  await page.getByRole('button', { name: 'Verify my address' }).click()
  await lies()
  await page.getByLabel('New email').fill('new@example.org')
  await page.getByLabel('Your password').fill('demo-password')
  await page.getByRole('button', { name: 'Change email' }).click()
  await lies()
  t.match(await page.locator('.notice').textContent(), 'An email is on its way.')
})

walk('A head sees and changes on a phone who comes, without scrolling', {
  viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true,
}, async (t, page) => {
  const id = await createEvent('A full room', 1)
  for (const name of ['noor', 'student']) {
    await send('POST', `/events/${id}/register`, await tokenOf(`${name}@demo.example.org`), {})
  }
  await signIn(page, 'head', { to: `/manage/${id}` })
  const rows = page.locator('tbody tr')
  await rows.filter({ hasText: 'Comes' }).waitFor()
  await rows.filter({ hasText: 'Waits (number 1)' }).waitFor()
  t.ok(await endOfButtons(page) <= 390)
})

walk('A new event whose end is refused is not created, and keeps what was typed', {
  refusals: ['POST /agenda 400'],
}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  await signIn(page, 'head', { to: '/manage' })
  await page.getByRole('button', { name: 'New event' }).click()
  await dialog.getByLabel('Title').fill('Only once')
  await dialog.getByLabel('Description').fill('A talk in the smallest room')
  await dialog.getByLabel('Date and time').fill('2031-05-01T18:00')
  await dialog.getByText('Use an address instead').click()
  await dialog.getByLabel('Address of the picture').fill('https://images.example.org/once.png')
  await dialog.getByLabel('End').fill('2031-05-01T17:00')
  await dialog.getByLabel('Place').fill('Room 1')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('End must be after the start of the event').waitFor()
  await dialog.getByLabel('Seats').fill('5')
  await page.keyboard.press('Escape')
  t.equal(await entry(page, 'Only once').count(), 0)

  await page.getByRole('button', { name: 'New event' }).click()
  t.equal(await dialog.getByLabel('Place').inputValue(), 'Room 1')
  t.equal(await dialog.getByLabel('Seats').inputValue(), '5')
  await dialog.getByLabel('End').fill('2031-05-01T19:00')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await notified(page, '“Only once” has been saved.')
  t.equal(await entry(page, 'Only once').count(), 1)
  await page.getByRole('button', { name: 'New event' }).click()
  t.equal(await dialog.getByLabel('Title').inputValue(), '')
})

walk('A new event is created once, although the response to the first try is lost', {
  refusals: ['POST /agenda failed', 'POST /agenda failed', 'POST /agenda 422'],
}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  await signIn(page, 'head', { to: '/manage' })
  for (const title of ['A lost response', 'A changed event']) {
    await page.route('**/agenda', async route => {
      await route.fetch()
      await route.abort()
    }, { times: 1 })
    await page.getByRole('button', { name: 'New event' }).click()
    await dialog.getByLabel('Title').fill(title)
    await dialog.getByLabel('Description').fill('A talk in the smallest room')
    await dialog.getByLabel('Date and time').fill('2031-06-01T18:00')
    await dialog.getByText('Use an address instead').click()
    await dialog.getByLabel('Address of the picture').fill('https://images.example.org/lost.png')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText("Can't reach the service.").waitFor()
    // The user comes back to the form.
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'New event' }).click()
    if (title === 'A changed event') await dialog.getByLabel('Title').fill('Changed since')
    await dialog.getByRole('button', { name: 'Save' }).click()
    if (title === 'A lost response') await notified(page, '“A lost response” has been saved.')
  }
  await dialog.getByText('Your first try has been saved').waitFor()
  await page.reload()
  await page.locator('main h1').waitFor()
  t.strictSame(await Promise.all(['A lost response', 'A changed event', 'Changed since'].map(title =>
    entry(page, title).count())), [1, 1, 0])
})

walk('The dates of a series are shown before they are created', {}, async (t, page) => {
  await createEvent('A weekly evening', null)
  const dialog = page.getByRole('dialog')
  await signIn(page, 'head', { to: '/manage' })
  const repeat = async (times: string) => {
    await entry(page, 'A weekly evening').first().getByRole('button', { name: 'Repeat' }).click()
    await dialog.getByLabel('How many more times').fill(times)
  }
  const dates = dialog.getByRole('checkbox')
  const chosen = async () => Promise.all((await dates.all()).map(date => date.isChecked()))
  await repeat('2')
  t.strictSame(await chosen(), [true, true])
  await dates.nth(1).uncheck()
  await dialog.getByRole('button', { name: 'Create' }).click()
  await notified(page, '1 event has been created.')
  // The last of the two is the first in the list.
  await entry(page, 'A weekly evening').last().getByRole('button', { name: 'Repeat' }).click()
  await dialog.getByLabel('How many more times').fill('3')
  t.strictSame(await chosen(), [false, true, true])
  await dialog.getByText('exists already').waitFor()
  if (process.env.LOOK) await page.screenshot({ path: `${process.env.LOOK}/repeat.png` })
  if (process.env.LOOK) await page.setViewportSize({ width: 390, height: 800 })
  if (process.env.LOOK) await page.screenshot({ path: `${process.env.LOOK}/repeat-390.png` })
  for (const place of [1, 2]) await dates.nth(place).uncheck()
  await dialog.getByRole('button', { name: 'Create' }).click()
  await dialog.getByText('Please choose at least one date.').waitFor()
})

walk('A series that was typed survives Escape', {}, async (t, page) => {
  await createEvent('A series', null)
  await signIn(page, 'head', { to: '/manage' })
  const dialog = page.getByRole('dialog')
  const open = () => entry(page, 'A series').getByRole('button', { name: 'Repeat' }).click()
  await open()
  await dialog.getByLabel('How often').selectOption('Every two weeks')
  await dialog.getByLabel('How many more times').fill('9')
  await page.keyboard.press('Escape')
  await open()
  t.equal(await dialog.getByLabel('How often').inputValue(), '2')
  t.equal(await dialog.getByLabel('How many more times').inputValue(), '9')
})

walk('A person who comes after all is told whether they have a seat', {}, async (t, page) => {
  const [free, full] = [await createEvent('Free again', 1), await createEvent('Full by now', 1)]
  const [student, noor] = [await tokenOf('student@demo.example.org'), await tokenOf('noor@demo.example.org')]
  for (const id of [free, full]) {
    await send('POST', `/events/${id}/register`, student, {})
    await send('PUT', `/me/seats/${id}`, student, { coming: false })
  }
  await send('POST', `/events/${full}/register`, noor, {})
  await signIn(page, 'student', { to: `/events/${free}` })
  await page.getByRole('button', { name: 'I can come after all' }).click()
  await notified(page, "You're registered for “Free again”.")
  const { upToDate } = watchStreams(page)
  await page.goto(`${origin}/events/${full}`)
  await page.getByRole('button', { name: 'I can come after all' }).click()
  await notified(page, 'You are number 1 in line for “Full by now”.')

  // While the page is open, the person gets the seat.
  await page.getByText('You are number 1 in line. Get an email').waitFor()
  await upToDate('/agenda')
  await send('PUT', `/me/seats/${full}`, noor, { coming: false })
  await page.getByText('✓ You have a seat.').waitFor()
  t.equal(await page.getByText('You are number 1 in line. Get an email').count(), 0)
})

walk('A person who waits is promised an email only if they get it', {}, async (t, page) => {
  const id = await createEvent('Full, with emails', 1)
  await send('POST', `/events/${id}/register`, await tokenOf('noor@demo.example.org'), {})
  await signIn(page, 'student', { to: `/events/${id}` })
  await page.getByRole('button', { name: 'Stand in line' }).click()
  const notice = page.getByText('Your email address is not verified')
  await notice.waitFor()
  await page.goto(`${origin}/me`)
  await notice.waitFor()
  await page.getByRole('button', { name: 'Send again' }).click()
  await notified(page, 'An email is on its way.')
  await page.goto(`${origin}/events/${id}`)
  await page.getByRole('link', { name: 'Get an email when a seat becomes free' }).click()
  await page.getByText('Not verified').waitFor()
  await sql`UPDATE users SET email_verified_at = now() WHERE email = 'student@demo.example.org'`
  await page.goBack()
  await page.getByText('You are number 1 in line. You get an email when a seat becomes free.').waitFor()
  t.equal(await notice.count(), 0)

  await page.goto(`${origin}/me/settings`)
  await page.getByLabel('has a new title, date, end, place, club or registration times').waitFor()
  const saved = page.waitForResponse(`${api}/me/notifications`)
  await page.getByLabel('I register for an event, get a seat, or am taken off the list').uncheck()
  await saved
  await page.goto(`${origin}/events/${id}`)
  await page.getByRole('link', { name: 'Get an email when a seat becomes free' }).waitFor()
  t.equal(await page.getByText('You get an email').count(), 0)
})

walk('The page of a club shows an event that runs as to come, and one that is over as past', {}, async (t, page) => {
  const head = await tokenOf('head@demo.example.org')
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
  for (const [title, start, end] of [['Three days', -30, 30], ['Half an hour', -1, -0.5]] as const) {
    const id = await createEvent(title, null, at(start))
    await send('PUT', `/agenda/${id}`, head, { endsAt: at(end) })
  }
  const me = await fetch(`${api}/auth/me`, { headers: { authorization: `Bearer ${head}` } })
  const { user } = await me.json() as { user: { club: { id: string } } }
  await page.goto(`${origin}/clubs/${user.club.id}`)
  await page.getByRole('heading', { name: 'Past events' }).waitFor()
  const sections = await page.locator('section').evaluateAll(all => all.map(({ textContent }) => textContent))
  const titled = (heading: string) => sections.find(text => text!.startsWith(heading))!
  t.match(titled('Upcoming'), 'Three days')
  t.notMatch(titled('Upcoming'), 'Half an hour')
  t.match(titled('Past'), 'Half an hour')
  t.notMatch(titled('Past'), 'Three days')
})

walk('An event in the night of New Year is in the list of the year in which it begins', {}, async (t, page) => {
  await createEvent('Fireworks', null, '2019-12-31T22:30:00Z')
  for (const [year, count] of [[2019, 1], [2020, 0]] as const) {
    await page.goto(`${origin}/events?year=${year}`)
    await page.getByText(`Past events of ${year}.`).waitFor()
    t.equal(await entry(page, 'Fireworks').count(), count, `${year}`)
  }
})

walk('The preview of an event tells the time zone', {}, async (t, page) => {
  const id = await createEvent('In a chat', null)
  await page.goto(`${origin}/events/${id}`)
  const preview = page.locator('meta[property="og:description"]')
  t.match(await preview.getAttribute('content'), /^Thursday,? 1 May 2031 at 18:00 UTC$/)
})

walk('Registration opens and closes when an organizer says', {
  refusals: ['PUT /agenda/{id} 400', 'POST /events/{id}/register 400'],
}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  const id = await createEvent('A quick one', 5)
  await signIn(page, 'head', { to: '/manage' })
  await entry(page, 'A quick one').getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Registration opens').fill('2031-04-01T12:00')
  await dialog.getByLabel('Registration closes').fill('2031-04-01T11:00')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('Registration opens must be before registration closes').waitFor()
  await dialog.getByLabel('Registration closes').fill('2031-04-30T12:00')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await notified(page, '“A quick one” has been saved.')

  await page.goto(`${origin}/events/${id}`)
  await page.getByText(/Registration opens on .*1 April 2031.*12:00/).waitFor()
  const register = page.getByRole('button', { name: 'Register' })
  await register.click()
  await page.getByText('Registration for this event has not opened yet').waitFor()
  await sql`UPDATE event_details SET opens_at = now() WHERE event_id = ${id}`
  await page.reload()
  await page.getByText('Registration closes on').waitFor()
  await register.click()
  await notified(page, "You're registered for “A quick one”.")

  await page.getByRole('button', { name: 'Sign out' }).click()
  await sql`UPDATE event_details SET closes_at = now() WHERE event_id = ${id}`
  await page.goto(`${origin}/events/${id}`)
  await page.getByText(/Registration closed on/).waitFor()
  t.equal(await register.count(), 0)
})

walk('An organizer whose list is old changes, repeats and deletes the event as it is now', {
  refusals: ['GET /agenda/{id}/seats 404'],
}, async (t, page) => {
  const id = await createEvent('An old list', null)
  const dialog = page.getByRole('dialog')
  const press = (name: string) => entry(page, 'An old list').getByRole('button', { name }).click()
  await signIn(page, 'head', { to: '/manage' })
  await entry(page, 'An old list').waitFor()
  await send('PUT', `/agenda/${id}`, head, { description: 'A different text', date: '2031-05-02T18:00:00Z' })
  const student = await tokenOf('student@demo.example.org')
  await send('POST', `/events/${id}/register`, student)

  await press('Edit')
  t.equal(await dialog.getByLabel('Description').inputValue(), 'A different text')
  t.equal(await dialog.getByLabel('Date and time').inputValue(), '2031-05-02T20:00')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await press('Repeat')
  t.match(await dialog.getByRole('listitem').first().textContent(), '9 May 2031')
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await press('Delete')
  await dialog.getByText('This also deletes 1 registration.').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()

  await send('DELETE', `/events/${id}`, head)
  await press('Edit')
  await notified(page, 'Event not found')
  t.equal(await entry(page, 'An old list').count(), 0, 'a button that is refused shows what there is')
})
