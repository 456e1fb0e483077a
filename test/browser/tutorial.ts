// Builds the app of docs/start/app.md and uses it. Not part of `npm test`, because it needs Chromium; run by
// `npm run test:browser`.
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'

import { openPage } from '../chromium.ts'
import { build, inject, insert } from '../helper.ts'
import { serve } from '../provider.ts'
import t from '../suite.ts'

const app = await build(t)
const club = await insert(app, 'clubs')
const event = await insert(app, 'events', { title: 'Chess Night', club_id: club, date: '2090-01-31T18:00Z' })
await app.sql`INSERT INTO event_details (event_id, capacity) VALUES (${event}, 5)`
const account = { email: 'student@example.org', password: 'demo-password', firstName: 'Ada', lastName: 'Lovelace' }
await inject(app, 'POST', '/auth/register', account)
await app.listen({ port: 0 })
const service = `http://localhost:${(app.server.address() as AddressInfo).port}`

const text = await readFile('docs/start/app.md', 'utf8')
const files = Object.fromEntries([...text.matchAll(/`(\S+\.(?:html|js))`[^\n]*\n\n```\w+\n(.*?)^```$/gms)]
  .map(([, name, content]) => [`/${name}`, content!.replaceAll('http://localhost:3000', service)]))
const { origin } = await serve(t, (request, response) => {
  const content = files[request.url === '/' ? '/index.html' : request.url!]
  const type = request.url!.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8'
  response.writeHead(content ? 200 : 404, { 'content-type': type }).end(content)
})
const page = await openPage(t)

async function signIn (email: string, password: string) {
  await page.fill('[name=email]', email)
  await page.fill('[name=password]', password)
  await page.click('text=Sign in')
}
const hasAlert = async (message: string) =>
  Boolean(await page.waitForSelector(`[role=alert]:text-is(${JSON.stringify(message)})`))

t.test('The page lists events for anyone', async t => {
  await page.goto(origin)
  t.match(await page.textContent('li'), /^Chess Night, .*, 0 coming, 5 seats left /)
})

t.test('It shows wrong fields, wrong passwords, and a limit with its time', async t => {
  await page.evaluate('document.querySelector("[name=email]").removeAttribute("type")')
  await signIn('ada', 'demo-password')
  t.ok(await hasAlert('email must be an email address'))
  await signIn(account.email, 'wrong')
  t.ok(await hasAlert('Invalid credentials'))
  for (let failures = 1; failures < app.config.SIGN_IN_ATTEMPTS; failures++) {
    await inject(app, 'POST', '/auth/login', { email: account.email, password: 'wrong' })
  }
  await signIn(account.email, 'wrong')
  t.ok(await page.waitForSelector(String.raw`[role=alert]:text-matches("^Too many failed .* \\(in \\d+ seconds\\)$")`))
  await app.sql`DELETE FROM rate_limits`
})

t.test('A member signs in, registers, and signs out', async t => {
  await signIn(account.email, account.password)
  await page.waitForSelector('text=Sign out')
  await page.click('text=Register')
  await page.waitForSelector('li:text-matches(", 1 coming, 4 seats left")')
  await page.click('text=Register')
  t.ok(await hasAlert('You have already registered for this event'))
  await page.click('text=Sign out')
  t.equal(await page.evaluate('sessionStorage.token'), undefined)
  await page.waitForSelector('#sign-in')
})

t.test('A token that no longer works signs out', async t => {
  await page.evaluate('sessionStorage.token = "x"')
  await page.reload()
  await page.click('text=Register')
  t.ok(await hasAlert('Invalid or expired token'))
  await page.waitForSelector('#sign-in')
})
