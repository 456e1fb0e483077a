// Uses the docs page: signs in and tries operations. Not part of `npm test`, because it needs Chromium; run by
// `npm run test:browser`.
import type { AddressInfo } from 'node:net'

import { openPage } from '../chromium.ts'
import { build, person } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)
const ada = await person(app)
await app.listen({ port: 0 })
const origin = `http://localhost:${(app.server.address() as AddressInfo).port}`

const page = await openPage(t, { viewport: { width: 1280, height: 1024 } })
const requested: string[] = []
const complaints: string[] = []
page.on('request', request => { requested.push(request.url()) })
page.on('requestfailed', request => { complaints.push(`${request.url()} ${request.failure()?.errorText}`) })
page.on('response', response => {
  if (response.status() >= 400) complaints.push(`${response.url()} ${response.status()}`)
})
page.on('console', message => {
  if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
})
page.on('pageerror', error => { complaints.push(error.message) })

t.test('The page shows every operation', async t => {
  await page.goto(`${origin}/docs`)
  await page.waitForSelector('.opblock')
  t.equal(await page.title(), 'Community Platform')
  t.match(await page.textContent('.info'), /the service behind a student community/)
  const { paths } = app.swagger() as { paths: Record<string, object> }
  t.equal(await page.locator('.opblock').count(), Object.values(paths).flatMap(path => Object.keys(path)).length)
})

t.test('On a phone and in the dark, the page fits and follows the browser', async t => {
  const phone = await page.context().browser()!.newPage({
    viewport: { width: 390, height: 844 }, isMobile: true, colorScheme: 'dark',
  })
  await phone.goto(`${origin}/docs`)
  await phone.locator('#operations-Sign-in-login .opblock-summary-control').click()
  await phone.locator('#operations-Sign-in-login .responses-table').waitFor()
  t.equal(await phone.evaluate('document.documentElement.scrollWidth'), 390)
  t.equal(await phone.evaluate('document.documentElement.className'), 'dark-mode')
  t.equal(await phone.locator('.info li').count(), 0, 'no line of the introduction reads as a list')
  t.match(await phone.textContent('.info'), `curl ${origin}/auth/me`)
  await phone.close()
})

t.test('A user signs in with a token and tries an operation', async t => {
  await page.click('.btn.authorize')
  await page.fill('.auth-container input', ada.token)
  await page.click('.auth-btn-wrapper .authorize')
  await page.click('.auth-btn-wrapper .btn-done')

  const operation = page.locator('#operations-Sign-in-getCurrentUser')
  await operation.locator('.opblock-summary-control').click()
  await operation.locator('.execute').click()
  const response = operation.locator('.live-responses-table .response')
  await response.waitFor()
  t.match(await response.locator('.response-col_status').textContent(), /^200/)
  t.match(await response.locator('.response-col_description').textContent(), `"email": "${ada.email}"`)
})

t.test('The token stays when the page is loaded again, and a filter finds operations', async t => {
  await page.reload()
  await page.waitForSelector('.opblock')
  t.equal(await page.locator('.btn.authorize.locked').count(), 1)
  const count = await page.locator('.opblock').count()
  await page.fill('.operation-filter-input', 'Live')
  await page.locator('#operations-Sign-in-login').waitFor({ state: 'detached' })
  t.ok(await page.locator('.opblock').count() < count)
  await page.fill('.operation-filter-input', '')
  await page.locator('.opblock').nth(count - 1).waitFor()
})

t.test('A user tries an operation with a body', async t => {
  const operation = page.locator('#operations-Sign-in-register')
  await operation.locator('.opblock-summary-control').click()
  t.match(await operation.locator('textarea.body-param__text').inputValue(), '"firstName": "Ada"', 'filled in')
  await operation.locator('.execute').click()
  const response = operation.locator('.live-responses-table .response')
  await response.waitFor()
  t.match(await response.locator('.response-col_status').textContent(), /^201/)
})

t.test('The browser logged no errors, and loaded nothing from other origins', async t => {
  t.strictSame(complaints, [])
  t.strictSame(requested.filter(url => !url.startsWith(origin) && !url.startsWith('data:')), [])
  t.ok(requested.includes(`${origin}/docs/json`))
})
