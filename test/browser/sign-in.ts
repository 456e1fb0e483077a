// Signs in with a browser, a browser app on a separate origin, the service, and a provider with a login page. Not part
// of `npm test`, because it needs Chromium; run by `npm run test:browser`.
import type { BrowserContext } from 'playwright-core'
import t, { type Test } from 'tap'

import { launch } from '../chromium.ts'
import { serveFrontend } from '../frontend.ts'
import { build } from '../helper.ts'
import { freePort } from '../process.ts'
import { CLIENT, newAccount, startProvider } from '../provider.ts'

const service = `http://localhost:${await freePort()}`
const IDP_REDIRECT_URI = `${service}/auth/google/callback`

// Browsers resolve all names under localhost to this machine.
const first = await serveFrontend(t, service, 'app.localhost')
const second = await serveFrontend(t, service, 'second.localhost')
const provider = await startProvider(t, IDP_REDIRECT_URI)
const ada = newAccount()
const grace = newAccount({ given_name: 'Grace', family_name: 'Hopper' })
provider.accounts.push(ada, grace)

const app = await build(t, {
  ...CLIENT, IDP_REDIRECT_URI, IDP_ISSUER: provider.issuer, FRONTEND_URL: `${first.origin},${second.origin}`,
})
await app.listen({ port: Number(new URL(service).port) })

const browser = await launch(t)

/** A new browser profile, and its page. */
async function open (t: Test) {
  const context = await browser.newContext()
  t.teardown(() => context.close())
  return { context, page: await context.newPage() }
}

type Page = Awaited<ReturnType<BrowserContext['newPage']>>

/** Navigates from the browser app to the login page of the provider. */
async function leave (page: Page, frontend: string) {
  await page.goto(frontend)
  await page.click('text=Sign in')
  await page.waitForURL(`${provider.issuer}/login/*`)
}

/** Submits the login page. */
async function fillIn (page: Page, { sub, password }: typeof ada) {
  await page.fill('input[name=sub]', sub)
  await page.fill('input[name=password]', password)
  await page.click('button')
}

for (const [which, frontend] of Object.entries({ first, second })) {
  t.test(`A user signs in at the ${which} frontend and returns to it`, async t => {
    const { context, page } = await open(t)
    await leave(page, frontend.origin)
    t.strictSame(
      (await context.cookies(service)).map(({ value, expires, ...cookie }) => cookie),
      [{ name: 'oauth_state_nonce', domain: 'localhost', path: '/', httpOnly: false, secure: false, sameSite: 'Lax' }]
    )
    await fillIn(page, ada)
    await page.waitForURL(`${frontend.origin}/auth/callback?*`)
    await page.waitForSelector('h1:not(:empty)')
    t.equal(await page.textContent('h1'), 'Hello Ada Lovelace')
    t.equal(await page.textContent('p'), '/events?page=2')
    t.strictSame([...new URL(page.url()).searchParams.keys()], ['token', 'to'])
    t.strictSame((await context.cookies(service)).map(({ name }) => name), ['oauth_state_nonce'])
  })
}

t.test('A callback with another cookie is rejected', async t => {
  const { context, page } = await open(t)
  const newcomer = newAccount()
  provider.accounts.push(newcomer)
  await leave(page, first.origin)
  const [cookie] = await context.cookies(service)
  await context.addCookies([{ ...cookie!, value: `${cookie!.value}x` }])
  await fillIn(page, newcomer)
  await page.waitForURL(`${IDP_REDIRECT_URI}?*`)
  t.equal(await page.textContent('body'), 'Invalid state')
  t.strictSame([...await app.sql`SELECT id FROM users WHERE email = ${newcomer.email!}`], [])
})

t.test('A sign-in that began in another browser is rejected', async t => {
  const [mallory, victim] = [await open(t), await open(t)]
  await leave(mallory.page, first.origin)
  const back = mallory.page.waitForRequest(`${IDP_REDIRECT_URI}?*`)
  await mallory.page.route(`${IDP_REDIRECT_URI}?*`, route => route.abort())
  await fillIn(mallory.page, grace)
  await victim.page.goto((await back).url())
  t.equal(await victim.page.textContent('body'), 'Invalid state')
})
