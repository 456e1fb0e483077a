// Walks through the example app as a visitor, a student, a club head and an admin, on `npm run example`. SCREENSHOTS=1
// also takes the pictures in the README. Not part of `npm test`, because it needs Chromium; run by
// `npm run test:browser`.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import type { BrowserContextOptions, Locator, Page } from 'playwright-core'
import sharp from 'sharp'

import { entry, fits, follow, h1, notified, PASSWORD, startExample } from '../example.ts'
import { freePort } from '../process.ts'
import t from '../suite.ts'
import { CLIENT, newAccount, startProvider } from '../provider.ts'

const SCREENSHOTS = process.env.SCREENSHOTS ? 'examples/spa/screenshots' : null

const PHONE: BrowserContextOptions = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true }

const AXE = await readFile('node_modules/axe-core/axe.min.js', 'utf8')

/** Has the service no longer accept the token of the page. */
const endSession = (page: Page) => page.evaluate("localStorage.setItem('token', 'what the service no longer takes')")

const [PORT, APP_PORT] = [await freePort(), await freePort()]
const IDP_REDIRECT_URI = `http://localhost:${PORT}/auth/google/callback`
const provider = await startProvider(t, IDP_REDIRECT_URI)
const grace = newAccount({ given_name: 'Grace', family_name: 'Hopper', picture: undefined })
provider.accounts.push(grace)
const { api, origin, sql, browser, example, walk, signIn, tokenOf, send, emailTo, linkTo } = await startExample({
  ...CLIENT,
  IDP_ISSUER: provider.issuer,
  IDP_REDIRECT_URI,
  PORT: String(PORT),
  APP_PORT: String(APP_PORT),
})

/** Requests the link to a calendar. Returns its path and content. */
async function subscribe (page: Page, { close = true } = {}) {
  await page.getByRole('button', { name: 'Subscribe' }).click()
  const dialog = page.getByRole('dialog', { name: 'Subscribe' })
  const address = await dialog.getByLabel('Calendar link').inputValue()
  const link = await dialog.getByRole('link', { name: 'Open in my calendar' }).getAttribute('href')
  if (link !== address.replace('http', 'webcal')) throw new Error(`It opens ${link}`)
  if (close) await dialog.getByRole('button', { name: 'Close' }).click()
  return { path: new URL(address).pathname, calendar: await (await fetch(address)).text() }
}

/** Takes a screenshot for the README. */
async function screenshot (page: Page, name: string) {
  if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/${name}.png` })
}

walk('A visitor looks around', {}, async (t, page) => {
  t.equal(await h1(page), 'Find your people')
  t.equal(await page.title(), 'Community')
  t.equal(await page.locator('.agenda li').count(), 4)
  await screenshot(page, 'home')

  await follow(page, 'Events')
  const loadPictures = () => page.evaluate<number>(`
    Promise.all([...document.querySelectorAll('main img')].map(image => {
      image.loading = 'eager'
      return image.decode()
    })).then(loaded => loaded.length)
  `)
  t.equal(await loadPictures(), 8, 'the demo data has pictures that load')
  t.equal(await page.title(), 'Events · Community')
  t.equal(await page.evaluate('document.activeElement.tagName'), 'H1', 'the focus is on the heading of the new page')
  t.equal(await page.locator('.events > li').count(), 8, 'the events to come')
  t.match(await page.locator('.events h2').first().textContent(), 'Harvest supper')
  await page.evaluate('scrollTo(0, 900)')
  await follow(page, 'Robot sumo, the third')
  t.match(await page.textContent('main'), /Robotics Workshop.*4 people registered/)
  await page.goBack()
  await page.locator('.events').waitFor()
  for (let n = 0; n < 100 && await page.evaluate('scrollY') !== 900; n++) await sleep(50)
  t.equal(await page.evaluate('scrollY'), 900, 'Back returns to the place in the list')
  await page.getByLabel('Club').selectOption('Film Society')
  await page.waitForURL('**/events?club=*')
  await page.locator('.events > li').nth(1).waitFor({ state: 'detached' })
  await page.goBack()
  await page.getByRole('link', { name: 'Past' }).click()
  await page.getByRole('link', { name: /^← / }).waitFor()
  t.equal(await page.locator('.events .badge').first().textContent(), 'Over')
  await page.goBack()

  t.equal((await subscribe(page)).path, '/feeds/events.ics')

  await follow(page, 'Clubs')
  await follow(page, 'Robotics Workshop')
  const { path, calendar } = await subscribe(page)
  t.match(path, /^\/feeds\/clubs\/[-0-9a-f]{36}\.ics$/)
  t.match(calendar, 'NAME;VALUE=TEXT:Robotics Workshop')
  t.match(await page.textContent('main'), /Robot sumo, the third.*Adaeze Nwosu.*Soldering/)

  await follow(page, 'Mentors')
  t.equal(await loadPictures(), 7)

  await follow(page, 'Blog')
  t.equal(await page.locator('.card').count(), 6, 'published ones only')
  await follow(page, 'Eleven people, four stoves, one pumpkin')
  t.match(await page.textContent('article'), /Noor Rahimi.*It weighed nineteen kilos/)

  await follow(page, 'Testimonials')
  t.equal(await page.locator('.quote').count(), 4)
  await page.getByRole('link', { name: 'Next →' }).click()
  await page.getByText('Page 2 of 2').waitFor()
  t.equal(await page.locator('.quote').count(), 2)

  await page.goto(`${origin}/no/such/page`)
  await page.waitForSelector('h1')
  t.equal(await h1(page), 'Page not found')
})

walk('A visitor who likes a mentor signs up, and returns to the mentors', {
  refusals: ['POST /auth/register 400', 'POST /auth/register 409'],
}, async (t, page) => {
  await follow(page, 'Mentors')
  await entry(page, 'Zanele Khumalo').getByRole('button').click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await page.getByRole('link', { name: 'Sign up' }).last().click()
  await page.getByRole('heading', { name: 'Sign up' }).waitFor()

  await page.getByLabel('First name').fill('Ada')
  await page.getByLabel('Email').fill('nobody')
  await page.getByLabel('Password').fill('short')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.getByText('Please correct the marked fields.').waitFor()
  await page.getByText('Last name must not be empty').waitFor()
  await page.getByText('Email must be an email address').waitFor()
  await page.getByText('Password must have at least 8 characters').waitFor()
  t.equal(await page.evaluate('document.activeElement.name'), 'lastName', 'the focus is on the first invalid field')

  await page.getByLabel('Last name').fill('Lovelace')
  await page.getByLabel('Email').fill('student@demo.example.org')
  await page.getByLabel('Password').fill('correct horse')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.getByText('User already exists').waitFor()
  await page.getByLabel('Email').fill('ada@example.org')
  await page.getByRole('button', { name: 'Sign up' }).click()
  await notified(page, 'Welcome, Ada.')
  t.equal(await h1(page), 'Mentors')

  const heart = entry(page, 'Zanele Khumalo').getByRole('button')
  await heart.click()
  await notified(page, 'You like Zanele Khumalo.')
  t.equal(await heart.getAttribute('aria-pressed'), 'true')
  // An update of the list that began before the like may still show the number before it, for 100 ms.
  await heart.getByText('1 like for Zanele Khumalo').waitFor()
  await page.reload()
  await page.waitForSelector('[aria-pressed=true]')
  await follow(page, 'Clubs')
  await follow(page, 'Kitchen Garden')
  t.equal(await heart.getAttribute('aria-pressed'), 'true', 'the page of her club knows it')
  await heart.click()
  await notified(page, 'You no longer like Zanele Khumalo.')
  // An update that began before the click may show the like once more.
  await heart.filter({ hasText: '0 likes for Zanele Khumalo' }).waitFor()
})

walk('A user signs in with the provider', {}, async (t, page) => {
  await page.goto(`${origin}/sign-in?to=/mentors`)
  await page.getByRole('button', { name: 'Sign in with' }).click()
  await page.fill('input[name=sub]', grace.sub)
  await page.fill('input[name=password]', grace.password)
  await page.click('button')
  await notified(page, 'Welcome, Grace.')
  t.equal(page.url(), `${origin}/mentors`, 'the token is removed from the address')
  await follow(page, 'Grace', 'Grace Hopper')
  t.match(await page.textContent('main'), 'Student')
})

walk('A token is accepted only for a sign-in that this app has begun', {}, async (t, page) => {
  // A valid token of a different user.
  const token = await tokenOf('student@demo.example.org', PASSWORD)

  async function isRefused (what: string, query: object) {
    await page.goto(`${origin}/auth/callback?${new URLSearchParams({ token, ...query })}`)
    await page.getByRole('heading', { level: 1, name: 'Sign-in was not completed' }).waitFor()
    t.equal(page.url(), `${origin}/auth/callback`, `${what}: the token has left the address`)
    t.equal(await page.evaluate('localStorage.getItem("token") ?? sessionStorage.getItem("token")'), null, what)
  }
  const begin = async () => {
    await page.goto(`${origin}/sign-in?to=/mentors`)
    await page.getByRole('button', { name: 'Sign in with' }).click()
    await page.waitForURL(`${provider.issuer}/login/*`)
  }

  await isRefused('no sign-in was begun', { to: 'another-value' })
  await isRefused('no value, and none was begun', {})
  await begin()
  await isRefused('the value of another sign-in', { to: 'another-value' })
  await begin()
  await isRefused('no value', {})
  await begin()
  await isRefused('an address', { to: '/mentors' })

  await begin()
  const back = page.waitForRequest(`${origin}/auth/callback?*`)
  await page.fill('input[name=sub]', grace.sub)
  await page.fill('input[name=password]', grace.password)
  await page.click('button')
  await notified(page, 'Welcome, Grace.')
  const value = new URL((await back).url()).searchParams.get('to')!

  await page.goto(`${origin}/auth/callback?${new URLSearchParams({ token, to: 'another-value' })}`)
  await page.getByRole('heading', { level: 1, name: 'Sign-in was not completed' }).waitFor()
  await page.goto(origin)
  await page.getByRole('link', { name: 'Grace', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await isRefused('a value that was used', { to: value })
})

walk('A student on a phone', {
  ...PHONE, refusals: ['POST /auth/login 401', 'GET /mentors/liked 401'],
}, async (t, page) => {
  const menu = page.getByRole('button', { name: 'Menu' })
  for (const path of ['', 'events', 'clubs', 'blogs', 'mentors', 'testimonials', 'register', 'sign-in']) {
    await page.goto(`${origin}/${path}`)
    await page.waitForSelector('h1')
    t.ok(await fits(page), `/${path} is no wider than the screen`)
  }

  await page.getByLabel('Email').fill('student@demo.example.org')
  await page.getByLabel('Password').fill('wrong password')
  await page.getByRole('button', { name: 'Sign in', exact: true }).tap()
  await page.getByText('Invalid credentials').waitFor()
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).tap()
  await notified(page, 'Welcome, Yuki.')

  await menu.tap()
  t.equal(await menu.getAttribute('aria-expanded'), 'true')
  await follow(page, 'Events')
  await follow(page, 'Sunrise from the ridge')
  await page.getByRole('button', { name: 'Register' }).tap()
  await notified(page, "You're registered for “Sunrise from the ridge”.")
  await page.getByText('7 people registered').waitFor()
  await page.getByText("✓ You're registered.").waitFor()
  t.ok(await fits(page))

  await menu.tap()
  await follow(page, 'Yuki', 'Yuki Tanaka')
  t.match(await page.textContent('main'), /Sunrise from the ridge.*Notes for a cheaper motor controller.*Adaeze Nwosu/)
  t.equal(await page.getByText('you will be reminded').count(), 0, 'the email is not verified')
  t.ok(await fits(page))

  const own = await subscribe(page, { close: false })
  t.match(own.calendar, 'SUMMARY:Sunrise from the ridge')
  t.ok(await fits(page))
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).tap()
  await page.getByRole('button', { name: 'Subscribe' }).tap()
  await page.getByRole('heading', { name: 'You already have a calendar link' }).waitFor()
  await page.getByRole('button', { name: 'Keep the link' }).tap()
  t.equal((await fetch(api + own.path)).status, 200)
  await page.getByRole('button', { name: 'Subscribe' }).tap()
  await page.getByRole('button', { name: 'Revoke the link' }).tap()
  await notified(page, 'The link has been revoked.')
  t.equal((await fetch(api + own.path)).status, 404)

  await follow(page, 'Write a post')
  await page.getByLabel('Title').fill('<img src=x onerror=alert(1)>')
  await page.getByLabel('Text').fill('It is <b>not</b> bold.\n\nThis is another paragraph.')
  await page.getByRole('button', { name: 'Submit' }).tap()
  await notified(page, 'Thank you.')
  await follow(page, '<img src=x onerror=alert(1)>')
  t.match(await page.textContent('article'), /It is <b>not<\/b> bold\.This is another paragraph/)
  t.match(await page.locator('.badge').textContent(), 'Draft')

  await endSession(page)
  await menu.tap()
  await follow(page, 'Mentors', 'Sign in')
  await page.getByText('Your session has expired. Please sign in again.').waitFor()
  t.match(page.url(), '/sign-in?expired=&to=%2Fmentors')
})

walk('A club head, by keyboard alone', { refusals: ['POST /agenda 400'] }, async (t, page) => {
  const press = async (...keys: string[]) => { for (const key of keys) await page.keyboard.press(key) }
  const type = async (text: string) => page.keyboard.insertText(text)
  /** Presses Tab until this element has the focus. */
  const tabTo = async (name: string) => {
    for (let tabs = 0; tabs < 60; tabs++) {
      await press('Tab')
      const words = '(document.activeElement.labels?.[0] ?? document.activeElement).textContent'
      if ((await page.evaluate<string>(words)).startsWith(name)) return
    }
    throw new Error(`Nobody gets to ${name} with Tab`)
  }

  await press('Tab')
  t.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the content')
  await press('Enter')
  t.equal(await page.evaluate('document.activeElement.id'), 'main')
  await page.reload()
  await page.waitForSelector('h1')
  await tabTo('Sign in')
  await press('Enter')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await tabTo('Email')
  await type('head@demo.example.org')
  await press('Tab')
  await type(PASSWORD)
  await press('Enter')
  await notified(page, 'Welcome, Nkechi.')

  await press('Tab')
  await page.evaluate('document.querySelector("#header a").focus()')
  await tabTo('My events')
  await press('Enter')
  await page.getByRole('heading', { name: 'My events' }).waitFor()
  t.equal(await page.locator('.agenda li').count(), 3)

  await tabTo('New event')
  await press('Enter')
  const dialog = page.getByRole('dialog', { name: 'New event' })
  await dialog.waitFor()
  await press('Escape')
  await dialog.waitFor({ state: 'detached' })
  t.equal(await page.evaluate('document.activeElement.textContent'), 'New event', 'the focus is restored')

  await press('Enter')
  await dialog.waitFor()
  await type('Robots on ice')
  await tabTo('Save')
  await press('Enter')
  await dialog.getByText('Description must have at least 10 characters').waitFor()
  await dialog.getByText('Date and time must not be empty').waitFor()
  await dialog.getByText('Please choose a picture.').waitFor()
  await type('Whoever stays on their wheels the longest wins.')
  // The keys of a date field depend on the browser and its language.
  await page.getByLabel('Date and time').fill('2031-12-31T18:30')
  await tabTo('Use an address instead')
  await press('Enter')
  await tabTo('Address of the picture')
  await type('https://images.example.org/events/ice.jpg')
  await press('Enter')
  await notified(page, '“Robots on ice” has been saved.')
  await dialog.waitFor({ state: 'detached' })
  const ice = entry(page, 'Robots on ice')
  t.match(await ice.textContent(), /31 December 2031.*18:30.*0 registrations/)

  await ice.getByRole('button', { name: 'Edit' }).focus()
  await press('Enter')
  await page.getByRole('dialog', { name: 'Edit event' }).waitFor()
  t.equal(await page.getByLabel('Date and time').inputValue(), '2031-12-31T18:30')
  await press('ControlOrMeta+a')
  await type('Robots on thin ice')
  await press('Enter')
  await notified(page, '“Robots on thin ice” has been saved.')

  await entry(page, 'Build a line follower').getByRole('link', { name: '11 registrations' }).focus()
  await press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Build a line' }).waitFor()
  t.equal(await page.locator('tbody tr').count(), 11)
  t.match(await page.textContent('tbody'), 'amara@demo.example.org')
  await page.getByRole('button', { name: 'Download' }).focus()
  const [file] = await Promise.all([page.waitForEvent('download'), press('Enter')])
  t.equal(file.suggestedFilename(), 'registrations.csv')
  const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n')
  t.equal(lines.length, 1 + 11)
  t.match(lines.join(), 'amara@demo.example.org')

  await page.goBack()
  await entry(page, 'Robots on thin ice').getByRole('button', { name: 'Delete' }).focus()
  await press('Enter')
  await page.getByRole('dialog').getByText('This also deletes 0 registrations.').waitFor()
  await tabTo('Delete')
  await press('Enter')
  await notified(page, '“Robots on thin ice” has been deleted.')
  t.equal(await entry(page, 'Robots on thin ice').count(), 0)

  await page.goto(`${origin}/admin`)
  await page.waitForSelector('h1')
  t.equal(await h1(page), 'No access')
})

walk('An admin', {
  refusals: ['GET /events/mine 400', 'PUT /users/{id}/role 400', 'POST /clubs 404'],
}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  const save = () => dialog.getByRole('button', { name: 'Save' }).click()
  const tab = async (name: string) => {
    await page.getByRole('navigation', { name: 'Administration' }).getByRole('link', { name }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
  }
  await signIn(page, 'admin')
  t.equal(await page.getByRole('link', { name: 'My events' }).count(), 0)
  await page.goto(`${origin}/manage`)
  await page.getByText('You are not associated with any club').waitFor()

  await follow(page, 'Admin', 'Overview')
  t.match(await page.textContent('.tiles'), /People28Clubs5Events13Posts11Mentors7/)
  t.equal(await page.locator('.chart').count(), 4)
  await screenshot(page, 'admin')
  const roles = page.locator('.chart', { hasText: 'People by role' })
  await roles.getByText('Show the numbers').click()
  t.match(await roles.getByRole('table').innerText(), /Student\s+22\s+Club head\s+5\s+Admin\s+1/)

  await tab('Blog')
  await page.getByRole('link', { name: 'Drafts 3' }).click()
  const pasted = entry(page, '<img src=x onerror=alert(1)>')
  await pasted.getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Title').fill('How to write about HTML')
  await save()
  await notified(page, '“How to write about HTML” has been saved.')
  const blog = entry(page, 'How to write about HTML')
  await blog.getByRole('button', { name: 'Approve' }).click()
  await notified(page, 'has been published.')
  await page.getByText('Published 7').click()
  await blog.getByRole('button', { name: 'Archive' }).click()
  await notified(page, 'has been archived.')
  await page.getByText('Archived 3').click()
  await blog.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await notified(page, 'has been deleted.')
  await page.getByRole('button', { name: 'New post' }).click()
  await dialog.getByLabel('Title').fill('News from the admins')
  await dialog.getByLabel('Text').fill('The office is closed on Friday, and open on Monday.')
  await dialog.getByLabel('Status').selectOption('Published')
  await save()
  await notified(page, '“News from the admins” has been saved.')

  await tab('Users')
  const saved = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Download' }).click()
  t.match(await readFile(await (await saved).path(), 'utf8'), /^\ufeffemail,firstName.*student@demo\.example\.org/s)
  t.equal(await page.locator('.rows > li').count(), 28)
  await page.getByLabel('Find by name or email').fill('lovelace')
  t.equal(await page.locator('.rows > li:visible').count(), 1)
  await entry(page, 'Ada Lovelace').getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('First name').fill('Augusta')
  await dialog.getByLabel('Member of').selectOption('Film Society')
  await save()
  await notified(page, 'Augusta Lovelace has been saved.')
  t.equal(await page.getByLabel('Find by name or email').inputValue(), 'lovelace', 'the search stays after an action')
  const augusta = entry(page, 'Augusta Lovelace')
  t.match(await augusta.textContent(), 'Film Society')
  await augusta.getByRole('button', { name: 'Role' }).click()
  await dialog.getByLabel('Role').selectOption('Club head')
  await save()
  await notified(page, 'The role of Augusta Lovelace is now Club head.')
  await augusta.getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await notified(page, 'Augusta Lovelace has been deleted.')
  await page.getByLabel('Find by name or email').fill('yuki')
  await entry(page, 'Yuki Tanaka').getByRole('button', { name: 'Delete' }).click()
  await dialog.getByText(/Published posts stay, but without the name\./).waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByLabel('Find by name or email').fill('')
  await page.getByRole('combobox', { name: 'Role' }).selectOption('Admin')
  await entry(page, 'Ingrid Solheim').getByRole('button', { name: 'Role' }).click()
  await dialog.getByLabel('Role').selectOption('Student')
  await save()
  await dialog.getByText('You cannot change your own role').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()

  await tab('Clubs')
  await page.getByRole('button', { name: 'New club' }).click()
  await dialog.getByLabel('Name').fill('Chess Circle')
  await dialog.getByLabel('Description').fill('Slow games for fast thinkers.')
  await dialog.getByLabel('Email address of the club head').fill('nobody@demo.example.org')
  await save()
  await dialog.getByText('Club head not found').waitFor()
  await dialog.getByLabel('Email address of the club head').fill('sven@demo.example.org')
  await save()
  await notified(page, '“Chess Circle” has been created.')
  t.match(await entry(page, 'Chess Circle').textContent(), 'led by Sven Lindqvist')

  await tab('Mentors')
  await page.getByRole('button', { name: 'New mentor' }).click()
  await dialog.getByLabel('Name').fill('Vera Menchik')
  await dialog.getByLabel('Expertise').fill('Endgames')
  await dialog.getByLabel('Club').selectOption('Chess Circle')
  await dialog.getByText('Use an address instead').click()
  await dialog.getByLabel('Address of the picture').fill('https://images.example.org/mentors/vera.jpg')
  await dialog.getByLabel('Profile URL').fill('javascript:alert(1)')
  await save()
  await notified(page, 'Vera Menchik has been saved.')
  await entry(page, 'Vera Menchik').getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Expertise').fill('Endgames, and everything before them')
  await save()
  await notified(page, 'Vera Menchik has been saved.')
  await follow(page, 'Mentors')
  await page.waitForSelector('.person')
  t.equal(await entry(page, 'Vera Menchik').count(), 1)
  t.equal(await entry(page, 'Vera Menchik').getByRole('link').count(), 0, 'a link to a script is not rendered')
  await follow(page, 'Admin', 'Overview')
  await tab('Mentors')
  await entry(page, 'Vera Menchik').getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await notified(page, 'Vera Menchik has been deleted.')

  await tab('Testimonials')
  await page.getByRole('button', { name: 'New testimonial' }).click()
  await dialog.getByLabel('Name').fill('Lyudmila Rudenko')
  await dialog.getByLabel('Class of').fill('2024')
  await dialog.getByLabel('Text').fill('I learned it late, and here.')
  await save()
  await notified(page, 'The testimonial by Lyudmila Rudenko has been saved.')
  await entry(page, 'Lyudmila Rudenko').getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Class of').fill('2023')
  await save()
  await entry(page, 'Lyudmila Rudenko').getByText('class of 2023').waitFor()
  await entry(page, 'Lyudmila Rudenko').getByRole('button', { name: 'Delete' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await notified(page, 'has been deleted.')

  await tab('Events')
  await entry(page, 'Planning the winter beds').getByRole('button', { name: 'Edit' }).click()
  await dialog.getByLabel('Title').fill('Planning the spring beds')
  await save()
  await notified(page, '“Planning the spring beds” has been saved.')
  await entry(page, 'Robot sumo').getByRole('link', { name: '4 registrations' }).click()
  await page.getByRole('heading', { level: 1, name: 'Robot sumo' }).waitFor()
  t.equal(await page.locator('tbody tr').count(), 4)
  await page.getByRole('button', { name: 'Email everyone' }).click()
  await dialog.getByLabel('Subject').fill('Bring your robot')
  await dialog.getByLabel('Text').fill('It should weigh half a kilogram at most.')
  await dialog.getByRole('button', { name: 'Send' }).click()
  await notified(page, '“Bring your robot” reaches 3 of 4.')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await notified(page, "You've been signed out.")
  t.equal(await h1(page), 'Find your people')
})

walk('A student verifies an address, resets and changes a password, and signs out everywhere', {
  refusals: ['POST /account/password/reset 400', 'PUT /me/password 401'],
}, async (t, page) => {
  const email = 'grace@example.org'
  const enter = async (label: string, value: string) => page.getByLabel(label, { exact: true }).fill(value)
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const signInWith = async (password: string) => {
    await enter('Email', email)
    await enter('Password', password)
    await press('Sign in')
    await page.getByRole('button', { name: 'Sign out', exact: true }).waitFor()
  }

  await page.goto(`${origin}/register`)
  for (const [label, value] of [['First name', 'Grace'], ['Last name', 'Hopper'], ['Email', email]] as const) {
    await enter(label, value)
  }
  await enter('Password', 'the first password')
  await press('Sign up')
  await notified(page, 'Welcome, Grace.')
  await page.goto(await linkTo(email, 'your email address'))
  await page.getByRole('heading', { name: 'Is this your email address?' }).waitFor()
  t.equal(page.url(), `${origin}/verify-email`, 'without the token')
  await press('Yes, it is mine')
  await notified(page, 'Thank you. Your email address has been verified.')

  await follow(page, 'Events')
  await follow(page, 'Sunrise from the ridge')
  await page.getByRole('button', { name: 'Register' }).click()
  await notified(page, "You're registered for “Sunrise from the ridge”.")
  const { text } = await emailTo(email, 'You are registered: Sunrise from the ridge')
  t.match(text, /You will be reminded on /)
  await follow(page, 'Grace', 'Grace Hopper')
  const ridge = entry(page, 'Sunrise from the ridge')
  const timeIn = async (part: Locator) => Date.parse((await part.locator('time').first().getAttribute('datetime'))!)
  t.equal(await timeIn(ridge) - await timeIn(ridge.getByText('you will be reminded')), 24 * 3_600_000)
  await press('Sign out')

  await follow(page, 'Sign in')
  await follow(page, 'Forgot your password?')
  await enter('Email', email)
  await press('Send the email')
  await notified(page, 'If this email has an account, an email is on its way.')
  await page.goto(await linkTo(email, 'Set a new password'))
  await page.getByRole('heading', { name: 'Set a new password' }).waitFor()
  t.equal(page.url(), `${origin}/reset-password`)
  await enter('New password', 'password')
  await press('Set password')
  await page.getByText('New password must not be a common password').waitFor()
  await enter('New password', 'the second password')
  await press('Set password')
  await notified(page, 'Your password has been set. Please sign in.')
  await signInWith('the second password')

  await page.goto(`${origin}/me`)
  await follow(page, 'Settings')
  await enter('Current password', 'the first password')
  await enter('New password', 'the third password')
  await press('Change password')
  await page.getByText('Current password is wrong').waitFor()
  await enter('Current password', 'the second password')
  await press('Change password')
  await notified(page, 'Your password has been changed.')
  t.equal(await h1(page), 'Grace Hopper', 'still signed in')

  const token = await page.evaluate('localStorage.getItem("token")')
  await follow(page, 'Settings')
  await press('Sign out everywhere')
  await notified(page, "You've been signed out on all devices.")
  const { status } = await fetch(`${api}/auth/me`, { headers: { authorization: `Bearer ${token}` } })
  t.equal(status, 401)
  await page.goto(`${origin}/reset-password`)
  await page.getByRole('heading', { name: 'This link is incomplete' }).waitFor()
})

walk('A student chooses emails', {
  refusals: ['POST /account/unsubscribe/unknown 404'],
}, async (t, page) => {
  await signIn(page, 'student')
  await page.goto(`${origin}/me`)
  await follow(page, 'Settings')
  const reminder = page.getByLabel('an event I registered for begins soon')
  t.ok(await reminder.isChecked())
  const changed = page.waitForResponse(`${api}/me/notifications`)
  await reminder.uncheck()
  await changed
  await page.reload()
  await page.waitForSelector('h1')
  t.notOk(await reminder.isChecked())
  await page.getByRole('button', { name: 'Verify my address' }).click()
  await notified(page, 'An email is on its way.')

  await page.goto(`${origin}/unsubscribe#token=unknown`)
  await page.getByRole('button', { name: 'Turn them off' }).click()
  await page.getByRole('heading', { name: 'This link no longer works' }).waitFor()
  await page.getByRole('link', { name: 'your settings' }).click()
  await page.waitForURL(`${origin}/me/settings`)
})

/** What axe finds wrong for people with a screen reader or a keyboard. */
async function barriers (page: Page) {
  await page.evaluate(AXE)
  const { violations } = await page.evaluate<{ violations: { id: string, nodes: { html: string }[] }[] }>('axe.run()')
  return violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])
}

walk('A student changes name, picture and email in the settings, and deletes the account', {
  refusals: ['DELETE /me 401'],
}, async (t, page) => {
  const [email, other, password] = ['emmy@example.org', 'noether@example.org', 'the emmy password']
  await fetch(`${api}/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password, firstName: 'Emy', lastName: 'Noether' }),
  })
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const file = (name: string, mimeType: string, buffer: Buffer) => ({ name, mimeType, buffer })
  const photo = await sharp({ create: { width: 900, height: 600, channels: 3, background: 'teal' } }).jpeg().toBuffer()
  await page.goto(`${origin}/sign-in?to=/me`)
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await press('Sign in')
  await page.getByRole('heading', { level: 1, name: 'Emy Noether' }).waitFor()
  await follow(page, 'Settings')
  t.strictSame(await barriers(page), [])

  await page.getByLabel('First name').fill('Emmy')
  await press('Save name')
  await notified(page, 'Your name has been saved.')
  await page.getByRole('link', { name: 'Emmy', exact: true }).waitFor()

  await page.getByLabel('New email').fill(other)
  const upload = page.getByLabel('Choose a picture: New picture')
  await upload.setInputFiles(file('me.gif', 'image/gif', Buffer.from('GIF89a')))
  await page.getByText('Please choose a JPEG, PNG or WebP picture.').waitFor()
  await upload.setInputFiles(file('me.jpg', 'image/jpeg', Buffer.alloc(10_000_001)))
  await page.getByText('This picture has 10.1 MB. It can have at most 10 MB.').waitFor()
  await upload.setInputFiles(file('me.jpg', 'image/jpeg', photo))
  await notified(page, 'Your picture has been saved.')
  const inHeader = page.locator('#header .portrait img')
  await inHeader.waitFor()
  t.match(await inHeader.getAttribute('src'), `${api}/pictures/`)
  t.equal(await page.getByLabel('New email').inputValue(), other, 'other forms keep what was typed')
  t.strictSame(await barriers(page), [])

  for (const event of ['drop', 'paste']) {
    await page.getByRole('heading', { name: 'Settings' }).waitFor()
    const before = await inHeader.getAttribute('src')
    await page.locator('.upload').evaluate((part: any, [event, base64]) => {
      const { DataTransfer, File, ClipboardEvent, DragEvent, atob } = part.ownerDocument.defaultView
      const data = new DataTransfer()
      const bytes = Uint8Array.from(atob(base64!), (letter: string) => letter.charCodeAt(0))
      data.items.add(new File([bytes], 'me.jpg', { type: 'image/jpeg' }))
      const options = { bubbles: true, cancelable: true }
      part.dispatchEvent(event === 'drop'
        ? new DragEvent(event, { ...options, dataTransfer: data })
        : new ClipboardEvent(event!, { ...options, clipboardData: data }))
    }, [event, photo.toString('base64')])
    for (let n = 0; n < 500 && await inHeader.getAttribute('src') === before; n++) await sleep(20)
    t.not(await inHeader.getAttribute('src'), before, event)
  }

  await press('Remove picture')
  await notified(page, 'Your picture has been removed.')
  await page.getByRole('button', { name: 'My earlier pictures' }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'My pictures' })
  await dialog.getByRole('button', { name: /^Picture of / }).first().waitFor()
  t.equal(await dialog.getByRole('button', { name: /^Picture of / }).count(), 3)
  t.strictSame(await barriers(page), [])
  await dialog.getByRole('button', { name: /^Picture of / }).first().focus()
  await page.keyboard.press('Enter')
  await notified(page, 'Your picture has been saved.')

  await page.goto(`${origin}/me/submit`)
  // The first upload is slow, and the user chooses a different picture. The third is slow as well.
  const delays = [2000, 0, 1000]
  await page.route(`${api}/me/pictures`, async route => {
    await sleep(delays.shift())
    // The page has cancelled the first upload.
    await route.continue().catch(() => {})
  })
  const chooser = page.getByLabel('Choose a picture: Picture')
  await chooser.setInputFiles(file('other.jpg', 'image/jpeg', await sharp(photo).resize(100).toBuffer()))
  await page.getByText('Uploading …').waitFor()
  await chooser.setInputFiles(file('post.jpg', 'image/jpeg', photo))
  await page.getByText('The picture has been uploaded.').waitFor()
  t.strictSame(await barriers(page), [])
  // The form waits for an upload that runs.
  await chooser.setInputFiles(file('post.jpg', 'image/jpeg', photo))

  await page.getByLabel('Title').fill('How I proved it')
  await page.getByLabel('Text').fill('It took a summer and two notebooks.')
  await press('Submit')
  await notified(page, 'Thank you.')
  await sql`UPDATE blogs SET status = 'PUBLISHED' WHERE title = 'How I proved it'`
  await page.goto(`${origin}/blogs`)
  const card = page.locator('.card').filter({ has: page.getByRole('heading', { name: 'How I proved it' }) })
  for (const image of ['.cover img', '.portrait img']) {
    const { src, width } = await card.locator(image).evaluate(async (image: any) => {
      await image.decode()
      return { src: image.src, width: image.naturalWidth }
    })
    t.match(src, new RegExp(`^${api}/pictures/[-0-9a-f]{36}\\?width=480$`), image)
    t.equal(width, 480, image)
  }
  t.strictSame(await barriers(page), [])
  await card.getByRole('link').click()
  await page.locator('.byline .portrait img').waitFor()
  t.match(await page.locator('article .cover img').getAttribute('src'), new RegExp(`^${api}/pictures/[-0-9a-f]{36}$`))

  await page.goto(`${origin}/me/settings`)
  const part = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Email address' }) })
  await part.getByLabel('New email').fill(other)
  await part.getByLabel('Your password').fill(password)
  await press('Change email')
  await notified(page, 'An email is on its way.')
  await page.goto(await linkTo(other, 'your email address'))
  await press('Yes, it is mine')
  await notified(page, 'Thank you. Your email address has been verified.')

  await page.locator('a[href="/me"]').first().click()
  await follow(page, 'Settings')
  await page.getByText(`Your address is ${other}.`).waitFor()
  const download = page.waitForEvent('download')
  await press('Export my data')
  t.equal((await download).suggestedFilename(), 'personal-data.json')
  await press('Delete my account')
  const last = page.getByRole('dialog', { name: 'Delete your account' })
  for (const [tried, told] of [['wrong', 'Current password is wrong'], [password, undefined]] as const) {
    await last.getByLabel('Your password').fill(tried)
    await last.getByRole('button', { name: 'Delete my account' }).click()
    if (told) await last.getByText(told).waitFor()
  }
  await notified(page, 'Your account has been deleted.')
  t.equal((await sql`SELECT FROM users WHERE email = ${other}`).length, 0)
})

walk('A student unsubscribes by the link in an email, without signing in', {}, async (t, page) => {
  const email = 'grace@example.org'
  await page.goto(await linkTo(email, 'You are registered: Sunrise from the ridge'))
  await page.getByRole('heading', { name: 'Unsubscribe from these emails' }).waitFor()
  t.equal(page.url(), `${origin}/unsubscribe`, 'without the token')
  const authorization = `Bearer ${await tokenOf(email, 'the third password')}`
  const wanted = async () => {
    const response = await fetch(`${api}/me/notifications`, { headers: { authorization } })
    return (await response.json() as { notifications: object }).notifications
  }
  t.match(await wanted(), { registration: true }, 'the page alone turns off nothing')
  await page.getByRole('button', { name: 'Turn them off' }).click()
  await notified(page, "You're unsubscribed from these emails.")
  t.match(await wanted(), { registration: false, eventReminder: true })
  await page.goto(`${origin}/unsubscribe`)
  await page.getByRole('heading', { name: 'This link is incomplete' }).waitFor()
})

walk('A network error is reported, and can be retried', { refusals: ['GET /club-pages failed'] }, async (_t, page) => {
  await page.route(`${api}/club-pages`, route => route.abort('connectionrefused'), { times: 1 })
  await follow(page, 'Clubs', 'No connection')
  await page.getByText("Can't reach the service.").waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Clubs' }).waitFor()
})

walk('A request on a connection that has gone silent fails after half a minute', {}, async (_t, page) => {
  await page.clock.install()
  await page.goto(origin)
  // Never continues.
  await page.route(`${api}/club-pages`, () => {}, { times: 1 })
  const sent = page.waitForRequest(`${api}/club-pages`)
  await page.getByRole('link', { name: 'Clubs' }).first().click()
  await sent
  await page.clock.fastForward(30_000)
  await page.getByText("Can't reach the service.").waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Clubs' }).waitFor()
})

/** The moments when clocks change, forward and back. */
const CLOCK_CHANGES = {
  'Australia/Sydney': ['2031-10-04T16:00:00Z', '2031-04-05T16:00:00Z'],
  'America/Los_Angeles': ['2031-03-09T10:00:00Z', '2031-11-02T09:00:00Z'],
  'Europe/Berlin': ['2031-03-30T01:00:00Z', '2031-10-26T01:00:00Z'],
}

for (const [timezoneId, changes] of Object.entries(CLOCK_CHANGES)) {
  walk(`Editing an event near a change of the clocks in ${timezoneId} does not move it`, { timezoneId }, async (
    t, page
  ) => {
    const token = await tokenOf('head@demo.example.org', PASSWORD)
    const title = `Night shift in ${timezoneId}`
    const form = { title, description: 'When the clocks change', imageUrl: 'data:image/png,' }
    const { event } = await send('POST', '/events', token, { ...form, data: changes[0] })
    const sent: unknown[] = []
    page.on('request', request => { if (request.method() === 'PUT') sent.push(request.postDataJSON()) })
    await signIn(page, 'head')
    const edit = async () => {
      await entry(page, title).getByRole('button', { name: 'Edit' }).click()
      return page.getByRole('dialog', { name: 'Edit event' })
    }
    const save = async (dialog: Locator) => {
      await dialog.getByRole('button', { name: 'Save' }).click()
      await dialog.waitFor({ state: 'detached' })
    }
    const stored = async () => (await sql`SELECT date FROM events WHERE id = ${event.id}`)[0]!.date.toISOString()

    for (const change of changes) {
      for (const minutes of [-90, -40, 0, 20, 80]) {
        const date = new Date(Date.parse(change) + minutes * 60_000 + 15_250)
        await sql`UPDATE events SET date = ${date} WHERE id = ${event.id}`
        await page.goto(`${origin}/manage`)
        await save(await edit())
        t.strictSame(sent.splice(0), [], 'nothing was changed, so nothing is sent')
        const dialog = await edit()
        await dialog.getByLabel('Description').fill(`${minutes} minutes after ${change}`)
        await save(dialog)
        t.strictSame(sent.splice(0), [{ description: `${minutes} minutes after ${change}` }])
        t.equal(await stored(), date.toISOString())

        // Ten minutes later, within the hour that may come twice.
        const later = await edit()
        const input = later.getByLabel('Date and time')
        const shown = await input.inputValue()
        t.match(shown, ':15.25', 'seconds are shown')
        await input.fill(shown.replace(/:(\d)(\d):/, (_, tens, ones) => `:${Number(tens) + 1}${ones}:`))
        await save(later)
        t.strictSame(sent.splice(0), [{ date: new Date(date.getTime() + 600_000).toISOString() }])
      }
    }
    await sql`DELETE FROM events WHERE id = ${event.id}`
  })
}

walk('Only a 401 ends a session', {
  refusals: [
    'GET /auth/me 503', 'GET /auth/me 429', 'GET /auth/me 502', 'GET /auth/me failed', 'GET /auth/me 401',
  ],
}, async (t, page) => {
  await signIn(page, 'student')
  for (const status of [503, 429, 502, 0]) {
    await page.route(`${api}/auth/me`, route => status === 0
      ? route.abort('connectionreset')
      : route.fulfill({ status, headers: { 'access-control-allow-origin': origin }, json: { message: 'Not now' } }),
    { times: 1 })
    await page.goto(`${origin}/me`)
    await page.getByText(status === 0 ? "Can't reach the service." : 'Not now').waitFor()
    t.equal(await page.getByRole('link', { name: 'Sign in' }).count(), 0, 'the session may go on')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { level: 1, name: 'Yuki Tanaka' }).waitFor()
  }

  await endSession(page)
  await page.goto(`${origin}/verify-email#token=unknown`)
  await page.getByRole('heading', { name: 'Is this your email address?' }).waitFor()
  await page.getByRole('link', { name: 'Sign in' }).waitFor()
  await endSession(page)
  await page.goto(`${origin}/unsubscribe#token=unknown`)
  await page.getByRole('heading', { name: 'Unsubscribe from these emails' }).waitFor()
  await endSession(page)
  await page.goto(`${origin}/me`)
  await page.getByText('Your session has expired. Please sign in again.').waitFor()
  t.match(page.url(), '/sign-in?expired=&to=%2Fme')
})

walk('An expired session keeps the text that a student has written', {
  refusals: [
    'POST /blogs/submit 401', 'POST /blogs/submit 401', 'POST /auth/login 401', 'POST /blogs/submit 401',
    'POST /blogs/submit 401',
  ],
}, async (t, page) => {
  const dialog = page.getByRole('dialog', { name: 'Your session has expired' })
  const write = async () => {
    await follow(page, 'Write a post')
    await page.getByLabel('Title').fill('What took an hour')
    await page.getByLabel('Text').fill('A thousand words that nobody wants to write again.')
    await endSession(page)
    await page.getByRole('button', { name: 'Submit' }).click()
    await dialog.waitFor()
  }
  const enter = async (name: string, password: string) => {
    await dialog.getByLabel('Email').fill(`${name}@demo.example.org`)
    await dialog.getByLabel('Password').fill(password)
    await dialog.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  await signIn(page, 'student')
  await follow(page, 'Blog')
  await write()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Your session has expired. Please sign in again.').waitFor()
  t.match(await page.getByLabel('Text').inputValue(), 'A thousand words')
  await page.getByRole('button', { name: 'Submit' }).click()
  await enter('student', 'wrong password')
  await dialog.getByText('Invalid credentials').waitFor()
  await enter('student', PASSWORD)
  await notified(page, 'Thank you.')
  t.equal(await h1(page), 'Yuki Tanaka')
  t.equal(await entry(page, 'What took an hour').count(), 1)

  await write()
  await enter('noor', PASSWORD)
  await page.getByRole('heading', { name: 'Good to see you, Noor' }).waitFor()
  t.strictSame((await sql`SELECT FROM blogs WHERE title = 'What took an hour'`).length, 1, 'not in the name of another')

  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.goto(`${origin}/sign-in?to=/blogs`)
  await page.getByRole('button', { name: 'Sign in with' }).click()
  const signInAtProvider = async (page: Page) => {
    await page.fill('input[name=sub]', grace.sub)
    await page.fill('input[name=password]', grace.password)
    await page.click('button')
  }
  await signInAtProvider(page)
  await notified(page, 'Welcome, Grace.')
  await write()
  const [other] = await Promise.all([page.waitForEvent('popup'), dialog.getByRole('link').click()])
  await other.getByRole('button', { name: 'Sign in with' }).click()
  await signInAtProvider(other)
  await notified(page, 'Thank you.')
  t.equal(await h1(page), 'Grace Hopper')
})

walk('An admin saves valid changes, and sees why others are refused', {
  refusals: ['PUT /blogs/{id} 400'],
}, async (t, page) => {
  const dialog = page.getByRole('dialog')
  const edit = async (title: string) => entry(page, title).getByRole('button', { name: 'Edit' }).click()
  const save = () => dialog.getByRole('button', { name: 'Save' }).click()
  await sql`UPDATE users SET last_name = '' WHERE email = 'sven@demo.example.org'`
  await signIn(page, 'admin')
  await page.goto(`${origin}/admin/users`)
  await edit('Sven')
  await dialog.getByLabel('First name').fill('Svante')
  await save()
  await notified(page, 'Svante has been saved.')

  await page.goto(`${origin}/admin/blogs`)
  await edit('How to talk to a stranger')
  await dialog.getByText('You can replace the picture, but not remove it.').waitFor()
  await dialog.getByText('Use an address instead').click()
  t.equal(await dialog.getByLabel('Address of the picture').inputValue(), '', 'a data URL is not shown as text')
  await dialog.getByLabel('Address of the picture').fill('no address')
  await save()
  await dialog.getByText('Picture must be a URL').waitFor()
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  t.equal(await page.locator('.notice').count(), 0, 'nothing is said to be saved')

  await page.goto(`${origin}/admin/testimonials`)
  const voice = entry(page, 'Olumide Bakare')
  await voice.locator('img').waitFor()
  await edit('Olumide Bakare')
  await dialog.getByRole('button', { name: 'Remove the picture' }).click()
  await save()
  await notified(page, 'The testimonial by Olumide Bakare has been saved.')
  t.equal(await voice.locator('img').count(), 0, 'the photo of a testimonial can be removed')
})

walk('Cards work for all scripts', PHONE, async (t, page) => {
  const token = await tokenOf('admin@demo.example.org', PASSWORD)
  const texts = {
    Arabic: ['كيف تتحدث مع غريب', 'أحضر شيئا لا موضوعا، وضع التذكرة على الطاولة. '.repeat(9)],
    Chinese: ['如何与陌生人交谈', '带一件东西而不是一个话题。上周有人把一张车票放在桌子上。'.repeat(9)],
    Thai: ['วิธีพูดคุยกับคนแปลกหน้า', 'นำสิ่งของมาไม่ใช่หัวข้อสัปดาห์ที่แล้วมีคนวางตั๋วรถเมล์'.repeat(9)],
    Russian: ['Как говорить с незнакомцем', 'Принесите предмет, а не тему. '.repeat(9)],
    family: ['👩‍👩‍👧‍👦'.repeat(3), '👩‍👩‍👧‍👦'.repeat(60)],
    word: ['Donaudampfschifffahrtsgesellschaft'.repeat(4), 'x'.repeat(400)],
  }
  for (const [title, content] of Object.values(texts)) {
    await send('POST', '/blogs', token, { title, content, status: 'PUBLISHED' })
  }
  await sql`
    UPDATE users SET first_name = ${'Wolfeschlegelsteinhausen'.repeat(3)}, last_name = 'नीता' WHERE email LIKE 'admin@%'
  `
  await page.goto(`${origin}/blogs`)
  await page.waitForSelector('.card')
  t.ok(await fits(page), 'no wider than the screen')
  for (const [script, [title, content]] of Object.entries(texts)) {
    const card = page.locator('.card').filter({ has: page.getByRole('heading', { name: title, exact: true }) })
    const preview = (await card.locator('p').first().textContent())!
    t.match(preview, /\u00a0…$/)
    t.ok(content!.startsWith(preview.slice(0, -2)), `${script}: ${preview}`)
    t.ok(preview.length > 100 && preview.length < 145, `${preview.length} characters`)
    t.notMatch(preview, /\u200d …/, 'what is seen as one letter is not cut')
    const { left, right } = await card.locator('h2').evaluate((h2: any) => {
      const range = h2.ownerDocument.createRange()
      range.selectNodeContents(h2)
      const [text, box] = [range.getBoundingClientRect(), h2.getBoundingClientRect()]
      return { left: text.left - box.left, right: box.right - text.right }
    })
    if (script === 'Arabic') t.ok(right < left, 'begins on the right')
    else t.ok(left <= right, `${script} begins on the left`)
    await card.click()
    await page.getByRole('heading', { level: 1, name: title, exact: true }).waitFor()
    t.ok(await fits(page), `${script}: the page also fits`)
    await page.goBack()
    await page.waitForSelector('.card')
  }

  await send('PUT', `/users/${(await sql`SELECT id FROM users WHERE email LIKE 'admin@%'`)[0]!.id}`, token, {
    firstName: 'नीता',
  })
  await page.goto(`${origin}/blogs`)
  await page.getByRole('link', { name: 'Donaudampf' }).click()
  t.equal(await page.locator('.byline .portrait').evaluate((span: any) => span.firstChild.data), 'नीनी')

  await page.goto(`${origin}/sign-in?to=/events`)
  await page.getByLabel('Email').fill('noor@demo.example.org')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).tap()
  await notified(page, 'Welcome, Noor.')
  await sql`
    UPDATE events SET title = ${texts.word[0]!}, description = ${texts.Arabic[1]!} WHERE title = 'Robot sumo, the third'
  `
  await page.reload()
  await page.waitForSelector('.events')
  t.ok(await fits(page))
  await follow(page, texts.word[0]!)
  await page.getByRole('button', { name: 'Register' }).click()
  await notified(page, "You're registered for")
  t.ok(await fits(page))
})

walk('A seat is taken, given up and passed on, while others look', {}, async (t, page) => {
  const noor = await tokenOf('noor@demo.example.org', PASSWORD)
  const head = await tokenOf('head@demo.example.org', PASSWORD)
  const { event: { id } } = await send('POST', '/events', head, {
    title: 'One seat',
    description: 'A talk in the smallest room',
    data: '2031-05-01T18:00:00Z',
    imageUrl: 'data:image/png,',
  })
  await send('PUT', `/agenda/${id}`, head, {
    capacity: 1, place: 'Room 1', endsAt: '2031-05-01T20:00:00Z', onlineUrl: 'https://meet.example.org/one',
  })
  await signIn(page, 'student')
  await page.goto(`${origin}/events/${id}`)
  await page.getByText('1 of 1 seat left').waitFor()
  t.match(await page.textContent('.facts'), /20:00.*until 22:00.*Room 1.*People with a seat see the link here/)
  const html = await (await fetch(`${origin}/events/${id}`)).text()
  t.match(html, '<meta property="og:title" content="One seat">', 'a preview for chats')
  t.strictSame(await barriers(page), [])

  await send('POST', `/events/${id}/register`, noor, {})
  await page.getByText('Full: new people wait').waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Stand in line' }).click()
  await page.getByText('You are number 1 in line.').waitFor()
  await send('PUT', `/me/seats/${id}`, noor, { coming: false })
  await page.reload()
  await page.getByText('✓ You have a seat.').waitFor()
  await page.getByRole('link', { name: 'https://meet.example.org/one' }).waitFor()
  await page.getByRole('button', { name: "I can't come" }).click()
  await page.getByRole('dialog').getByRole('button', { name: "I can't come" }).click()
  await notified(page, "You've cancelled your registration.")
  await page.getByRole('button', { name: 'I can come after all' }).click()
  await page.getByText('✓ You have a seat.').waitFor()

  await page.getByRole('button', { name: 'Sign out' }).click()
  await notified(page, "You've been signed out.")
  await signIn(page, 'admin')
  await page.goto(`${origin}/manage/${id}`)
  await page.getByText('2 registrations · 1 of 1 seat taken').waitFor()
  await page.getByRole('button', { name: 'Take off Yuki Tanaka' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Take off' }).click()
  await notified(page, 'Yuki Tanaka is off the list.')
  await page.goto(`${origin}/admin/events`)
  await entry(page, 'One seat').getByRole('button', { name: 'Repeat' }).click()
  await page.getByLabel('How many more times').fill('2')
  await page.getByRole('button', { name: 'Create' }).click()
  await notified(page, '2 events have been created.')
  await entry(page, 'One seat').first().getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Seats').fill('30')
  await page.getByRole('button', { name: 'Save' }).click()
  await notified(page, '“One seat” has been saved.')
  await sql`DELETE FROM event_registrations WHERE event_id = ${id}`
  await sql`DELETE FROM events WHERE title = 'One seat'`
})

t.test('A browser shows an old list right after a write, unless it is told to revalidate', async t => {
  // Not by `walk`: with routes, Playwright turns off the browser's cache.
  const context = await browser.newContext()
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.goto(origin)
  const count = (cache: string) => page.evaluate<number>(
    `fetch('${api}/events?limit=1', { cache: '${cache}' }).then(list => list.json())
      .then(({ pagination }) => pagination.total)`
  )
  const before = await count('default')
  const event = { title: 'A surprise', description: 'A talk about chess', data: '2031', imageUrl: 'data:image/png,' }
  await send('POST', '/events', await tokenOf('head@demo.example.org', PASSWORD), event)
  t.equal(await count('default'), before, 'the contract has stale-while-revalidate')
  t.equal(await count('no-cache'), before + 1)
})

t.test('Ctrl-C stops everything', async t => {
  example.child.kill('SIGINT')
  const { code, stderr } = await example.ended
  t.equal(code, 0)
  t.equal(stderr, '')
})
