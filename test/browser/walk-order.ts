// What happens while a request of the example app runs: a new choice, Escape, a different page, a sign-out.
import { setTimeout as sleep } from 'node:timers/promises'

import type { Page } from 'playwright-core'
import sharp from 'sharp'

import { entry, follow, h1, notified, startExample } from '../example.ts'

const { api, origin, sql, walk, signIn, tokenOf, send } = await startExample()

const picture = async (background: string) => ({
  name: 'picture.jpg',
  mimeType: 'image/jpeg',
  buffer: await sharp({ create: { width: 90, height: 60, channels: 3, background } }).jpeg().toBuffer(),
})

/** Delays requests. */
const delay = (page: Page, method: string, path: string, ms = 1500) => page.route(api + path, async route => {
  if (route.request().method() === method) await sleep(ms)
  // The page may have cancelled it.
  await route.continue().catch(() => {})
})

const write = async (page: Page, title: string) => {
  await page.getByLabel('Title').fill(title)
  await page.getByLabel('Text').fill('A text of more than ten characters.')
}

walk('A form waits for the picture that was chosen last, and sends nothing after its upload was cancelled', {}, async (
  t, page
) => {
  const chooser = page.getByLabel('Choose a picture: Picture')
  await signIn(page, 'student', { to: '/me/submit' })
  await delay(page, 'POST', '/me/pictures', 2000)
  await write(page, 'Two pictures')
  await chooser.setInputFiles(await picture('teal'))
  await page.getByRole('button', { name: 'Submit' }).click()
  await chooser.setInputFiles(await picture('red'))
  t.match(await page.locator('.upload > img').getAttribute('src'), 'blob:', 'the second picture is shown')
  t.ok(await page.locator('.upload > img').isVisible())
  await notified(page, 'Thank you.')
  const [blog] = await sql`SELECT image_url FROM blogs WHERE title = 'Two pictures'`
  t.match(blog!.image_url, /[-0-9a-f]{36}$/)

  await follow(page, 'Write a post')
  await write(page, 'A cancelled picture')
  await chooser.setInputFiles(await picture('teal'))
  await page.getByRole('button', { name: 'Submit' }).click()
  await page.getByRole('button', { name: 'Cancel the upload' }).click()
  await page.getByText('You cancelled the upload, so nothing has been sent.').waitFor()
  t.equal((await sql`SELECT FROM blogs WHERE title = 'A cancelled picture'`).length, 0)
  await page.getByRole('button', { name: 'Submit' }).click()
  await notified(page, 'Thank you.')
})

walk('A text that is dropped or pasted is no picture, although a picture of it comes along', {}, async (t, page) => {
  await signIn(page, 'student', { to: '/me/submit' })
  const isTaken = (event: string, types: string[]) => page.getByLabel('Text').evaluate((area: any, [event, types]) => {
    const { DataTransfer, File, ClipboardEvent, DragEvent } = area.ownerDocument.defaultView
    const data = new DataTransfer()
    for (const type of types!) data.setData(type, 'cells')
    if (event === 'paste') data.items.add(new File(['x'], 'cells.png', { type: 'image/png' }))
    const options = { bubbles: true, cancelable: true }
    const sent = event === 'paste'
      ? new ClipboardEvent(event, { ...options, clipboardData: data })
      : new DragEvent(event as string, { ...options, dataTransfer: data })
    area.dispatchEvent(sent)
    return sent.defaultPrevented
  }, [event, types] as const)
  for (const event of ['dragover', 'drop']) {
    t.notOk(await isTaken(event, ['text/plain']), `the browser does the ${event}`)
  }
  await isTaken('paste', ['text/plain', 'text/html'])
  t.notOk(await page.locator('.upload > img').isVisible())
  t.equal(await page.locator('.upload .issue').textContent(), '')
})

walk('A dialog that is closed while it saves still tells its result', {
  refusals: ['PUT /mentors/{id} 400'],
}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  const save = async (expertise: string) => {
    await entry(page, 'Zanele Khumalo').getByRole('button', { name: 'Edit' }).click()
    await dialog.getByLabel('Expertise').fill(expertise)
    await dialog.getByRole('button', { name: 'Save' }).click()
  }
  await signIn(page, 'admin', { to: '/admin' })
  await delay(page, 'PUT', '/mentors/*')
  await page.getByRole('navigation', { name: 'Administration' }).getByRole('link', { name: 'Mentors' }).click()
  await save('Compost')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await notified(page, 'Zanele Khumalo has been saved.')
  t.match(await entry(page, 'Zanele Khumalo').textContent(), 'Compost')

  await save('')
  await page.keyboard.press('Escape')
  await notified(page, 'Please correct the marked fields.')

  await page.getByRole('button', { name: 'Edit' }).last().waitFor()
  await save('Seeds')
  await page.goBack()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  await notified(page, 'Zanele Khumalo has been saved.')
  t.match(await h1(page), 'Overview')
})

walk('A notice is above a dialog that is opened after it', {
  refusals: ['DELETE /account/{id} failed'],
}, async (t, page) => {
  await signIn(page, 'admin', { to: '/admin/users' })
  await page.route(`${api}/account/*`, route => route.abort('connectionreset'))
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await notified(page, "Can't reach the service.")
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Edit' }).click()
  await page.getByRole('dialog').waitFor()
  const { x, y } = (await page.locator('.notice').boundingBox())!
  const pixel = await page.screenshot({ clip: { x: x + 12, y: y + 12, width: 1, height: 1 } })
  const [red] = await sharp(pixel).raw().toBuffer()
  t.equal(red, 0xa3, 'the notice is not dimmed')
})

walk('A page that is opened while a write runs shows it', {}, async (t, page) => {
  await signIn(page, 'student', { to: '/mentors' })
  await delay(page, 'POST', '/mentors/*/like')
  await entry(page, 'Zanele Khumalo').getByRole('button').click()
  await follow(page, 'Yuki', 'Yuki Tanaka')
  t.equal(await entry(page, 'Zanele Khumalo').count(), 1)
})

walk('An answer that comes after the page was left does not touch the next page', {}, async (t, page) => {
  await signIn(page, 'head', { to: '/manage' })
  await delay(page, 'GET', '/agenda/*/seats')
  await page.getByRole('button', { name: 'Edit' }).first().click()
  let answer = page.waitForResponse(`${api}/agenda/*/seats`)
  await follow(page, 'Clubs')
  await answer
  await sleep(200)
  t.equal(await page.getByRole('dialog').count(), 0, 'a dialog')

  await page.goto(`${origin}/me`)
  await delay(page, 'GET', '/me/account')
  answer = page.waitForResponse(`${api}/me/account`)
  await page.getByRole('button', { name: 'Subscribe' }).click()
  await follow(page, 'Clubs')
  await answer
  await sleep(200)
  t.equal(await page.getByRole('dialog').count(), 0, 'a link')

  await page.goto(`${origin}/me/submit`)
  await delay(page, 'POST', '/blogs/submit')
  await write(page, 'On the way out')
  await page.getByRole('button', { name: 'Submit' }).click()
  await follow(page, 'Clubs')
  await notified(page, 'Thank you.')
  t.equal(await h1(page), 'Clubs')

  // A new page is shown from its top, although an action of the page before loads it once more.
  const { event: { id } } = await send('POST', '/events', await tokenOf('head@demo.example.org'), {
    title: 'A long way', description: 'A walk of forty kilometres', data: '2031', imageUrl: 'data:image/png,',
  })
  await page.setViewportSize({ width: 1280, height: 400 })
  await page.goto(`${origin}/events/${id}`)
  await page.getByRole('button', { name: 'Register' }).waitFor()
  await page.evaluate('scrollTo(0, 200)')
  await delay(page, 'POST', '/events/*/register', 500)
  await delay(page, 'GET', '/club-pages')
  await page.getByRole('button', { name: 'Register' }).click()
  await page.evaluate("document.querySelector('#menu a[href=\"/clubs\"]').click()")
  await notified(page, "You're registered")
  t.equal(await h1(page), 'Clubs')
  t.equal(await page.evaluate('scrollY'), 0)
})

walk('A sign-out counts, although the user is being loaded', {}, async (t, page) => {
  await signIn(page, 'student', { to: '/me/settings' })
  await delay(page, 'GET', '/auth/me')
  await page.getByLabel('First name').fill('Yukiko')
  const answer = page.waitForResponse(`${api}/auth/me`)
  await page.getByRole('button', { name: 'Save name' }).click()
  await page.waitForRequest(`${api}/auth/me`)
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await answer
  await notified(page, 'Your name has been saved.')
  await page.getByRole('link', { name: 'Sign in' }).waitFor()
  t.equal(await page.getByRole('link', { name: 'Yukiko' }).count(), 0)
  t.equal(await h1(page), 'Find your people')
})

walk('Back and a reload return to the place in a list', {}, async (t, page) => {
  /** Waits until the page is at this place. */
  const isAt = async (place: number, what: string) => {
    for (let n = 0; n < 60 && await page.evaluate('scrollY') !== place; n++) await sleep(50)
    t.equal(await page.evaluate('scrollY'), place, what)
  }
  await page.setViewportSize({ width: 1280, height: 500 })
  await follow(page, 'Events')
  await page.evaluate('scrollTo(0, 900)')
  await page.reload()
  await isAt(900, 'a reload')
  await page.locator('.events h2 a').nth(4).click()
  await page.locator('.event').waitFor()
  await page.reload()
  await page.locator('.event').waitFor()
  await page.goBack()
  await page.locator('.events').waitFor()
  await isAt(900, 'Back after a reload')
  await page.goForward()
  await page.locator('.event').waitFor()
  await follow(page, 'Blog')
  await page.evaluate('scrollTo(0, 300)')
  await page.evaluate('history.back(); setTimeout(() => history.back(), 30)')
  await page.locator('.events').waitFor()
  await isAt(900, 'Back twice')
  await page.goForward()
  await page.locator('.event').waitFor()
  await isAt(0, 'a page that was passed keeps its own place')
})
