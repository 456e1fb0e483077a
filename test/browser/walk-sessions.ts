// Sessions, drafts and dialogs of the example app: on a shared computer, in two tabs, and with Back.
import type { Page } from 'playwright-core'

import { entry, follow, notified, PASSWORD, startExample } from '../example.ts'

const { origin, walk, signIn } = await startExample()

/** Opens a page that reads nothing with the token. /me reads the seats again whenever the stream tells a change. */
async function leaveMe (page: Page) {
  await page.goto(`${origin}/clubs`)
  await page.waitForSelector('main h1')
}

walk('A session on a shared computer stays in its tab after it has expired', {
  refusals: ['POST /blogs/submit 401', 'GET /auth/me 401'],
}, async (t, page) => {
  const kept = () => page.evaluate<object>(`({
    tab: sessionStorage.getItem('token')?.length > 99, browser: localStorage.getItem('token') !== null,
  })`)
  const expire = () => page.evaluate("sessionStorage.setItem('token', 'expired')")
  await signIn(page, 'student', { to: '/me/submit', shared: true })
  t.strictSame(await kept(), { tab: true, browser: false })
  await page.getByLabel('Title').fill('On a shared computer')
  await page.getByLabel('Text').fill('It belongs to the library, and closes at ten.')
  await expire()
  await page.getByRole('button', { name: 'Submit' }).click()
  const dialog = page.getByRole('dialog', { name: 'Your session has expired' })
  await dialog.getByLabel('Email').fill('student@demo.example.org')
  await dialog.getByLabel('Password').fill(PASSWORD)
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
  await notified(page, 'Thank you.')
  t.strictSame(await kept(), { tab: true, browser: false })

  await leaveMe(page)
  await expire()
  await page.goto(`${origin}/me`)
  await page.getByText('Your session has expired').waitFor()
  t.ok(await page.getByLabel('This is a shared computer').isChecked(), 'as the user chose before')
})

walk('The next person does not see what somebody else typed', {
  refusals: ['GET /auth/me 401'],
}, async (t, page) => {
  const expire = async () => {
    await page.evaluate("localStorage.setItem('token', 'expired')")
    await page.goto(`${origin}/me`)
    await page.getByText('Your session has expired').waitFor()
  }
  await signIn(page, 'student', { to: '/me/submit' })
  await page.getByLabel('Title').fill('A diary')
  await expire()
  await signIn(page, 'noor', { to: '/me/submit' })
  t.equal(await page.getByLabel('Title').inputValue(), '')
  await expire()
  await signIn(page, 'student', { to: '/me/submit' })
  t.equal(await page.getByLabel('Title').inputValue(), 'A diary', 'but the person who typed it does')
})

walk('Back closes a dialog, and its text stays', {}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  const edit = async () => {
    await follow(page, 'Users')
    await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Edit' }).click()
  }
  await signIn(page, 'admin', { to: '/admin' })
  await edit()
  await dialog.getByLabel('First name').fill('Nora')
  await page.goBack()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  t.equal(await dialog.count(), 0)
  await edit()
  t.equal(await dialog.getByLabel('First name').inputValue(), 'Nora')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Edit' }).click()
  t.equal(await dialog.getByLabel('First name').inputValue(), 'Nora')
  await dialog.getByRole('button', { name: 'Start over' }).click()
  t.equal(await dialog.getByLabel('First name').inputValue(), 'Noor')
})

walk('What was typed in the settings stays, except passwords', {}, async (t, page) => {
  await signIn(page, 'student', { to: '/me/settings' })
  await page.getByLabel('New email').fill('new@example.org')
  await page.getByLabel('Your password').fill(PASSWORD)
  await page.getByLabel('First name').fill('Yukiko')
  await follow(page, 'Events')
  await page.goBack()
  t.equal(await page.getByLabel('New email').inputValue(), 'new@example.org')
  t.equal(await page.getByLabel('Your password').inputValue(), '')
  t.notMatch(await page.evaluate('JSON.stringify(sessionStorage)'), PASSWORD)
  await page.getByRole('button', { name: 'Save name' }).click()
  await notified(page, 'Your name has been saved.')
  t.equal(await page.getByText('This is what you typed earlier').count(), 1, 'only in the form that was not sent')
})

walk('What was typed to sign up stays until the account is created', {}, async (t, page) => {
  const fields = { 'First name': 'Ada', 'Last name': 'Lovelace', Email: 'ada@example.org' }
  await page.goto(`${origin}/register`)
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value)
  await page.getByRole('main').getByRole('link', { name: 'Sign in' }).click()
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
  await page.goBack()
  await page.getByRole('heading', { level: 1, name: 'Sign up' }).waitFor()
  for (const [label, value] of Object.entries(fields)) t.equal(await page.getByLabel(label).inputValue(), value)
  await page.getByLabel('Password').fill('correct horse')
  await page.getByRole('main').getByRole('button', { name: 'Sign up' }).click()
  await notified(page, 'Welcome, Ada.')
  t.notMatch(await page.evaluate('JSON.stringify(sessionStorage)'), 'Lovelace')
})

walk('Without storage, public pages work, and sign-in says why it cannot', {}, async (t, page) => {
  await page.addInitScript(() => {
    for (const name of ['localStorage', 'sessionStorage', 'BroadcastChannel']) {
      Object.defineProperty(globalThis, name, { get () { throw new DOMException('Blocked', 'SecurityError') } })
    }
  })
  await page.goto(origin)
  for (const name of ['Events', 'Clubs', 'Blog', 'Mentors', 'Testimonials']) await follow(page, name)
  for (const path of ['/sign-in', '/register', '/me']) {
    await page.goto(origin + path)
    await page.getByText('Your browser blocks storage for this site').waitFor()
  }
  t.equal(await page.locator('form').count(), 0)
})

walk('A sign-out in a different tab closes the dialogs of this tab', {}, async (t, page) => {
  await signIn(page, 'admin', { to: '/admin/users' })
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Edit' }).click()
  const other = await page.context().newPage()
  await other.goto(origin)
  await other.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor()
  t.equal(await page.getByRole('dialog').count(), 0)
  t.equal(await page.getByText('Noor').count(), 0)
})

walk('A sign-in counts in a tab that was open before, and Back leads to the page before it', {}, async (t, page) => {
  await follow(page, 'Events')
  const other = await page.context().newPage()
  await other.goto(`${origin}/clubs`)
  await other.waitForSelector('h1')
  await signIn(other, 'student')
  await page.getByRole('link', { name: 'Yukiko', exact: true }).waitFor()
  t.equal(await page.textContent('h1'), 'Events')
  await other.goBack()
  await other.getByRole('heading', { level: 1, name: 'Clubs' }).waitFor()
})

walk('A profile that was changed in a different tab is shown', {}, async (t, page) => {
  await signIn(page, 'noor', { to: '/me/settings' })
  const other = await page.context().newPage()
  await other.goto(`${origin}/events`)
  await other.getByRole('link', { name: 'Noor', exact: true }).waitFor()
  await page.getByLabel('First name').fill('Nura')
  await page.getByRole('button', { name: 'Save name' }).click()
  await notified(page, 'Your name has been saved.')
  await follow(other, 'Noor', 'Nura Rahimi')
  await other.getByRole('link', { name: 'Nura', exact: true }).waitFor()

  await page.getByLabel('First name').fill('Noor')
  await page.getByRole('button', { name: 'Save name' }).click()
  await page.getByRole('link', { name: 'Noor', exact: true }).waitFor()
  await follow(other, 'Settings')
  t.equal(await other.getByLabel('First name').inputValue(), 'Noor')
})

walk('Back leaves a page after a double click on its link', {}, async (t, page) => {
  await follow(page, 'Clubs')
  await page.getByRole('link', { name: 'Events', exact: true }).dblclick()
  await page.getByRole('heading', { level: 1, name: 'Events' }).waitFor()
  await page.goBack()
  await page.getByRole('heading', { level: 1, name: 'Clubs' }).waitFor()
  t.equal(page.url(), `${origin}/clubs`)
})

walk('A tab on a shared computer is never signed in as somebody else', {
  refusals: ['GET /auth/me 401'],
}, async (t, page) => {
  await signIn(page, 'student', { to: '/me', shared: true })
  const other = await page.context().newPage()
  await other.goto(origin)
  await signIn(other, 'noor', { to: '/me' })
  const title = async (tab: typeof page) => {
    await tab.goto(`${origin}/me`)
    await tab.waitForSelector('main h1')
    return tab.textContent('h1')
  }
  t.equal(await title(page), 'Yukiko Tanaka')
  await leaveMe(page)
  await page.evaluate("sessionStorage.setItem('token', 'expired')")
  t.equal(await title(page), 'Sign in')
  t.equal(await title(other), 'Noor Rahimi', 'the session of the other tab stays')
})
