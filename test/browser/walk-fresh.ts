// Writes of a student and of a club head, as every page shows them.
import type { Page } from 'playwright-core'
import sharp from 'sharp'

import { entry, notified } from '../example.ts'
import { fill, PICTURE, press, startFresh } from '../fresh.ts'

const { api, id, linkTo, open, origin, play, robotics, send, signIn, sql, tokenOf, walk } = await startFresh()
const sumo = await id('events', 'title', 'Robot sumo, the third')
const ridge = `/events/${await id('events', 'title', 'Sunrise from the ridge')}`

walk('Each write of a student is shown at once', {}, async (t, page) => {
  const noor = await tokenOf('noor@demo.example.org')
  const { event: { id: room } } = await send('POST', '/events', await tokenOf('head@demo.example.org'), {
    title: 'A full room', description: 'A talk in the smallest room', data: '2031', imageUrl: 'data:image/png,',
  })
  await send('PUT', `/agenda/${room}`, await tokenOf('head@demo.example.org'), { capacity: 1 })
  await send('POST', `/events/${room}/register`, noor)
  const full = `/events/${room}`
  await signIn(page, 'student')
  const photo = await sharp({ create: { width: 9, height: 9, channels: 3, background: 'teal' } }).jpeg().toBuffer()
  const switches = () => page.locator('[id="email-registration"]').isChecked()
  const heart = (page: Page) => entry(page, 'Zanele Khumalo').getByRole('button').click()
  await play(t, page, [
    {
      name: 'a like',
      at: '/mentors',
      act: async page => {
        await heart(page)
        await notified(page, 'You like Zanele')
      },
      shown: { '/mentors': /1 like for Zanele Khumalo/, '/me': /Zanele Khumalo/ },
    },
    {
      name: 'the like is taken back',
      at: '/mentors',
      act: async page => {
        await heart(page)
        await notified(page, 'You no longer like Zanele')
      },
      shown: { '/mentors': [/1 like for Zanele Khumalo/], '/me': [/Zanele Khumalo/] },
    },
    {
      name: 'a registration',
      at: ridge,
      act: async page => {
        await press('Register')(page)
        await notified(page, "You're registered")
      },
      shown: {
        [ridge]: /You're registered.*I can't come/,
        '/events': /Sunrise from the ridge.{0,600}7 people registered/,
        '/': /Sunrise from the ridge.{0,200}7 registered/,
        '/me': /Sunrise from the ridge/,
      },
    },
    {
      name: 'a registration is cancelled',
      at: ridge,
      act: async page => {
        await press("I can't come")(page)
        await page.getByRole('dialog').getByRole('button', { name: "I can't come" }).click()
        await notified(page, "You've cancelled")
      },
      shown: { [ridge]: /You said that you can't come/, '/me': /You can't come/ },
    },
    {
      name: 'a person comes after all',
      at: ridge,
      act: async page => {
        await press('I can come after all')(page)
        await notified(page, "You're registered")
      },
      shown: { [ridge]: [/You said that you can't come/], '/me': [/You can't come/] },
    },
    {
      name: 'a place in line of a full event',
      at: full,
      act: async page => {
        await press('Stand in line')(page)
        await notified(page, 'You are number 1 in line')
      },
      shown: { [full]: /You are number 1 in line/, '/me': /A full room.{0,150}Number 1 in line/ },
    },
    {
      name: 'a seat becomes free',
      at: full,
      act: async () => {
        await send('PUT', `/me/seats/${full.slice('/events/'.length)}`, noor, { coming: false })
      },
      shown: { [full]: /You have a seat/, '/me': [/A full room.{0,150}Number 1 in line/] },
    },
    {
      name: 'a post',
      at: '/me/submit',
      act: async page => {
        await page.getByLabel('Title').fill('A fresh post')
        await page.getByLabel('Text').fill('It has just been written.')
        await press('Submit')(page)
        await notified(page, 'Thank you.')
      },
      shown: { '/me': /A fresh post/ },
    },
    {
      name: 'a new name',
      at: '/me/settings',
      act: async page => {
        await page.getByLabel('First name').fill('Yukiko')
        await press('Save name')(page)
        await notified(page, 'Your name has been saved.')
      },
      shown: { '/me': /Yukiko Tanaka/, '/blogs': /Yukiko Tanaka/ },
    },
    {
      name: 'the address is verified',
      at: '/me/settings',
      act: async page => {
        await press('Verify my address')(page)
        await notified(page, 'An email is on its way.')
        await page.goto(await linkTo('student@demo.example.org', 'your email address'))
        await press('Yes, it is mine')(page)
        await notified(page, 'Your email address has been verified.')
      },
      shown: { '/me/settings': [/Not verified/] },
    },
  ])

  await open(page, '/me/settings')
  await press('My earlier pictures')(page)
  await page.getByText('You have not uploaded any pictures yet.').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  await page.getByLabel('Choose a picture: New picture')
    .setInputFiles({ name: 'me.jpg', mimeType: 'image/jpeg', buffer: photo })
  await notified(page, 'Your picture has been saved.')
  await press('My earlier pictures')(page)
  await page.getByRole('button', { name: /^Picture of / }).waitFor()
  await open(page, '/me')
  t.match(await page.locator('.profile img').getAttribute('src'), `${api}/pictures/`, 'a picture')
  await open(page, '/blogs')
  t.match(await page.locator('.card', { hasText: 'Yukiko' }).first().locator('.portrait img').getAttribute('src'),
    `${api}/pictures/`)

  await open(page, '/me/settings')
  await press('Remove picture')(page)
  await notified(page, 'Your picture has been removed.')
  for (const [path, part] of [['/me', '.profile'], ['/blogs', '.card:has-text("Yukiko")']] as const) {
    await open(page, path)
    t.equal(await page.locator(part).first().locator('.portrait img').count(), 0, `${path} without the picture`)
  }

  await open(page, '/me/settings')
  t.ok(await switches())
  const [changed] = await Promise.all([
    page.waitForResponse(response => response.request().method() === 'PUT'),
    page.locator('#email-registration').uncheck(),
  ])
  t.equal(changed.status(), 200)
  await open(page, '/me/settings')
  t.notOk(await switches(), 'a switch of emails')

  await open(page, '/me')
  await press('Subscribe')(page)
  await press('Close')(page)
  await press('Subscribe')(page)
  await page.getByRole('heading', { name: 'You already have a calendar link' }).waitFor()
  await press('Revoke the link')(page)
  await notified(page, 'The link has been revoked.')
  await press('Subscribe')(page)
  await page.getByRole('dialog', { name: 'Subscribe' }).waitFor()
})

walk('A person who deletes the account is gone at once', {}, async (t, page) => {
  const [email, password] = ['leaver@example.org', 'correct horse']
  await send('POST', '/auth/register', '', { email, password, firstName: 'Early', lastName: 'Leaver' })
  await sql`
    WITH author AS (
      UPDATE users SET club_id = ${robotics.slice('/clubs/'.length)} WHERE email = ${email} RETURNING id
    )
    INSERT INTO blogs (title, content, image_url, status, author_id)
    SELECT 'Farewell', 'So long.', 'data:image/png,', 'PUBLISHED', id FROM author
  `
  await page.goto(`${origin}/sign-in`)
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await notified(page, 'Welcome, Early.')
  await play(t, page, [{
    name: 'the account is deleted',
    at: '/me/settings',
    act: async page => {
      await press('Delete my account')(page)
      await page.getByRole('dialog').getByLabel('Your password').fill(password)
      await page.getByRole('dialog').getByRole('button', { name: 'Delete my account' }).click()
      await notified(page, 'Your account has been deleted.')
    },
    shown: { '/': [/Early/], '/blogs': [/Early Leaver/] },
  }])
})

walk('Each write of a club head is shown at once', {}, async (t, page) => {
  await signIn(page, 'head')
  const everywhere = (words: RegExp | [RegExp]) =>
    ({ '/manage': words, '/events': words, '/': words, [robotics]: words })
  const date = new Date(Date.now() + 3_600_000 * 5).toISOString().slice(0, 16)
  await play(t, page, [
    {
      name: 'a new event',
      at: '/manage',
      act: fill('New event', {
        Title: 'A fresh event',
        Description: 'It has just been planned.',
        'Date and time': date,
        ...PICTURE,
        Place: 'Room 1',
      }, '“A fresh event” has been saved.'),
      shown: everywhere(/A fresh event/),
    },
    {
      name: 'another title and place',
      at: '/manage',
      act: fill('Edit', { Title: 'An event with a twist', Place: 'Room 2' }, 'has been saved.', 'A fresh event'),
      shown: { ...everywhere(/An event with a twist/), '/': /An event with a twist.{0,200}Room 2/ },
    },
    {
      name: 'a series',
      at: '/manage',
      act: async page => {
        await entry(page, 'An event with a twist').getByRole('button', { name: 'Repeat' }).click()
        await page.getByLabel('How many more times').fill('1')
        await page.getByRole('button', { name: 'Create' }).click()
        await notified(page, '1 event has been created.')
      },
      shown: {
        '/manage': /An event with a twist.*An event with a twist/,
        '/events': /An event with a twist.*An event with a twist/,
      },
    },
    {
      name: 'a person is taken off the list',
      at: `/manage/${sumo}`,
      act: async page => {
        await page.getByRole('button', { name: 'Take off Yuki' }).click()
        await page.getByRole('dialog').getByRole('button', { name: 'Take off' }).click()
        await notified(page, 'is off the list.')
      },
      shown: {
        [`/manage/${sumo}`]: /3 registrations/,
        [`/events/${sumo}`]: /3 people registered/,
        '/manage': /Robot sumo, the third.{0,100}3 registrations/,
      },
    },
    {
      name: 'fewer seats',
      at: '/manage',
      act: fill('Edit', { Seats: '3' }, 'has been saved.', 'Robot sumo, the third'),
      shown: {
        [`/manage/${sumo}`]: /3 of 3 seats taken/,
        [`/events/${sumo}`]: /Full: new people wait/,
        '/events': /Robot sumo, the third.{0,600}Full: new people wait/,
      },
    },
    {
      name: 'an event is deleted',
      at: '/manage',
      act: async page => {
        for (let n = 0; n < 2; n++) {
          await entry(page, 'An event with a twist').first().getByRole('button', { name: 'Delete' }).click()
          await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
          await entry(page, 'An event with a twist').nth(1 - n).waitFor({ state: 'detached' })
        }
      },
      shown: everywhere([/An event with a twist/]),
    },
  ])
})
