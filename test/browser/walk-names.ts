// Names of 200 characters without a space, at all widths of the example app.
import { entry, fits, startExample } from '../example.ts'

const NAME = 'Studierendenvertretung'.repeat(4)
const LONG = 'Wolfeschlegelsteinhausenbergerdorff'.repeat(6).slice(0, 200)

const { sql, origin, walk, signIn } = await startExample({ COMMUNITY_NAME: NAME })
const WIDTHS = [1280, 1130, 1110, 840, 390, 320]

walk('A long name is as wide as its place', {}, async (t, page) => {
  const [club] = await sql`UPDATE clubs SET name = ${LONG} WHERE name = 'Robotics Workshop' RETURNING id`
  await sql`
    UPDATE users SET first_name = ${LONG}, last_name = ${LONG}, club_id = ${club!.id} WHERE email LIKE 'admin@%'
  `
  await sql`UPDATE mentors SET name = ${LONG}, expertise = ${LONG} WHERE name = 'Adaeze Nwosu'`
  const [event] = await sql`
    UPDATE events SET title = ${LONG} WHERE title = 'Build a line follower in one evening' RETURNING id
  `
  await sql`
    INSERT INTO event_details (event_id, place) VALUES (${event!.id}, ${LONG})
    ON CONFLICT (event_id) DO UPDATE SET place = excluded.place
  `
  await signIn(page, 'admin', { to: '/admin' })
  /** The texts and controls that are not within the screen, or make a dialog scroll sideways. */
  const outside = () => page.evaluate<string[]>(`
    [...document.querySelectorAll('body *')].filter(element => {
      if (element.closest('.scroll, .unseen, .skip, [hidden]')) return false
      const { left, right } = element.getBoundingClientRect()
      const isWide = element.matches('dialog') && element.scrollWidth > element.clientWidth
      return isWide || left < -1 || right > innerWidth + 1
    }).map(({ outerHTML }) => outerHTML.slice(0, 200))
  `)
  const check = async (what: string) => {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 })
      t.strictSame(await outside(), [], `${what} at ${width}`)
      t.ok(await fits(page), `${what} fits at ${width}`)
      t.ok((await page.locator('#header').boundingBox())!.height < 80, `the header of ${what} at ${width}`)
    }
    await page.setViewportSize({ width: 1280, height: 800 })
  }
  for (const path of [
    '/admin', '/', '/events', `/events/${event!.id}`, `/clubs/${club!.id}`, '/mentors', '/me', '/me/settings',
    `/manage/${event!.id}`,
  ]) {
    await page.goto(origin + path)
    await page.locator('main h1').waitFor()
    await check(path)
  }
  for (const path of ['/admin/users', '/admin/events', '/admin/mentors']) {
    await page.goto(origin + path)
    for (const name of ['Edit', 'Delete']) {
      await entry(page, LONG.slice(0, 9)).getByRole('button', { name }).click()
      await page.getByRole('dialog').waitFor()
      await check(`${path} ${name}`)
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    }
  }
})

for (const locale of ['en-GB', 'de-DE', 'vi-VN', 'ar-EG']) {
  walk(`Charts have room for their words and numbers in ${locale}`, { locale }, async (t, page) => {
    await sql`UPDATE users SET first_name = 'Ingrid', last_name = 'Solheim' WHERE email LIKE 'admin@%'`
    await page.route('**/users/analytics', async route => {
      const response = await route.fetch()
      const { analytics } = await response.json()
      analytics.roleCounts = [{ role: 'STUDENT', _count: { role: 1234567 } }]
      await route.fulfill({ response, json: { analytics } })
    })
    await signIn(page, 'admin', { to: '/admin' })
    await page.getByText('1234567').first().waitFor()
    for (const width of [1280, 390, 320]) {
      await page.setViewportSize({ width, height: 800 })
      const { over, outside } = await page.evaluate<{ over: number, outside: string[] }>(`(() => {
        const boxOf = element => element.getBoundingClientRect()
        const texts = [...document.querySelectorAll('.chart text')]
        const ticks = texts.filter(text => text.matches('.tick') && text.textContent).map(boxOf)
        return {
          over: ticks.slice(1).filter(({ left }, place) => left < ticks[place].right).length,
          outside: texts.filter(text => boxOf(text).right > boxOf(text.closest('.chart')).right)
            .map(({ textContent }) => textContent),
        }
      })()`)
      t.equal(over, 0, `no month is over another at ${width}`)
      t.strictSame(outside, [], `no number is outside at ${width}`)
    }
  })
}

walk('A line that begins with an Arabic date is read from the left', { locale: 'ar-EG' }, async (t, page) => {
  await signIn(page, 'head', { to: '/manage' })
  await page.getByRole('link', { name: 'registrations' }).first().click()
  await page.locator('.lead time').waitFor()
  const [date, registrations] = await page.evaluate<{ left: number, right: number }[]>(`
    [...document.querySelector('.lead').childNodes].map(node => {
      const range = document.createRange()
      range.selectNode(node)
      const { left, right } = range.getBoundingClientRect()
      return { left, right }
    })
  `)
  t.ok(date!.right <= registrations!.left + 1, `${date!.right} <= ${registrations!.left}`)
})

walk('A name of one word has one initial', {}, async (t, page) => {
  await sql`UPDATE mentors SET name = 'Vera', image_url = 'data:,' WHERE name = 'Zanele Khumalo'`
  await page.goto(`${origin}/mentors`)
  t.equal(await entry(page, 'Vera').locator('.portrait').textContent(), 'V')
})
