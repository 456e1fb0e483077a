// A draw of seats: an organizer sets it, people take part, and everybody can compute the result again.
import { entry, fits, notified, startExample } from '../example.ts'

const { origin, sql, walk, signIn, tokenOf, send } = await startExample()
const head = await tokenOf('head@demo.example.org')

/** The value of an input for a time, some hours from now. */
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(0, 16)

walk('An organizer sets a draw, and people read whether they have a seat while they look', {
  refusals: ['PUT /agenda/{id} 400'],
  timezoneId: 'UTC',
}, async (t, page) => {
  const { event: { id } } = await send('POST', '/agenda', head, {
    title: 'A popular dinner', description: 'Food for one.', imageUrl: 'data:image/png,', date: `${inHours(48)}Z`,
  })
  await signIn(page, 'head', { to: '/manage' })
  await entry(page, 'A popular dinner').getByRole('button', { name: 'Edit' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Draw').fill(inHours(24))
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('Draw needs a number of seats').waitFor()
  await dialog.getByLabel('Seats').fill('1')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await notified(page, '“A popular dinner” has been saved.')

  await page.getByRole('button', { name: 'Sign out' }).click()
  await notified(page, "You've been signed out.")
  await signIn(page, 'student', { to: `/events/${id}` })
  await page.getByText('1 seat is drawn on').waitFor()
  await page.getByRole('button', { name: 'Register' }).click()
  await notified(page, 'You take part in the draw for “A popular dinner”.')
  await page.getByText('✓ You take part in the draw on').waitFor()
  await send('POST', `/events/${id}/register`, await tokenOf('noor@demo.example.org'), {})
  const { seats } = await send('GET', `/agenda/${id}/seats`, head, undefined)
  t.strictSame(seats.map(({ state }: { state: string }) => state), ['drawing', 'drawing'])

  await page.getByRole('link', { name: 'How the seats are drawn' }).click()
  await page.getByText('✓ You take part.').waitFor()
  const commitment = await page.locator('dd code').first().textContent()
  t.match(commitment, /^[0-9a-f]{64}$/)
  await page.goBack()
  await page.getByText('✓ You take part in the draw on').waitFor()

  await sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${id}`
  await page.getByText(/✓ You have a seat\.|You are number 1 in line\./).waitFor({ timeout: 20_000 })
  const hasSeat = await page.getByText('✓ You have a seat.').isVisible()
  await page.getByRole('link', { name: 'How the seats are drawn' }).click()
  await page.getByText(hasSeat ? 'You are number 1 of 2, and have a seat.' : 'You are number 2 of 2').waitFor()
  t.equal(await page.locator('dd code').first().textContent(), commitment)
  await page.getByRole('button', { name: 'Compute it again' }).click()
  await page.getByText('✓ Your browser has computed the same').waitFor()
  await page.setViewportSize({ width: 390, height: 844 })
  t.equal(await fits(page), true, 'nothing is wider than a phone')
})

walk('A draw that is not right is found', {}, async (_t, page) => {
  const [{ id }] = await sql<[{ id: string }]>`SELECT id FROM events WHERE title = 'A popular dinner'`
  await page.route(`**/agenda/${id}/draw`, async route => {
    const response = await route.fetch()
    const { draw } = await response.json()
    await route.fulfill({ response, json: { draw: { ...draw, order: draw.order.toReversed() } } })
  })
  await page.goto(`${origin}/events/${id}/draw`)
  await page.getByText('You do not take part.').waitFor()
  await page.getByRole('button', { name: 'Compute it again' }).click()
  await page.getByText('✗ The order is not the order of the lots.').waitFor()
})

walk('Organizers see who takes part, who comes, and since when somebody does not', {}, async (_t, page) => {
  const [{ id }] = await sql<[{ id: string }]>`SELECT id FROM events WHERE title = 'A popular dinner'`
  await send('PUT', `/me/seats/${id}`, await tokenOf('noor@demo.example.org'), { coming: false })
  await signIn(page, 'head', { to: `/manage/${id}` })
  const row = page.getByRole('row', { name: 'Noor Rahimi' })
  await row.getByText("Can't come").waitFor()
  await row.getByText('said so on').waitFor()
})

for (const [clock, off] of [['slow', -600_000], ['fast', 600_000]] as const) {
  walk(`A device whose clock is ten minutes ${clock} shows the time of the service`, {
    refusals: ['POST /events/{id}/register 400'],
  }, async (t, page) => {
    const { event: { id } } = await send('POST', '/agenda', head, {
      title: `A ${clock} dinner`,
      description: 'Food for one.',
      imageUrl: 'data:image/png,',
      date: `${inHours(48)}Z`,
      capacity: 1,
      drawAt: `${inHours(24)}Z`,
    })
    /** Lets registration open and close, some minutes from now. */
    const letOpen = (opens: number, closes: number) => sql`
      UPDATE event_details SET
        opens_at = now() + make_interval(mins => ${opens}), closes_at = now() + make_interval(mins => ${closes})
      WHERE event_id = ${id}
    `
    const register = page.getByRole('button', { name: 'Register' })
    await page.clock.setFixedTime(Date.now() + off)
    await letOpen(-9, -5)
    await signIn(page, 'amara', { to: `/events/${id}` })
    await page.getByText('Registration closed on').waitFor()
    t.equal(await register.count(), 0)

    await letOpen(5, 9)
    await page.reload()
    await page.getByText('Registration opens on').waitFor()
    await register.click()
    await page.getByText('Registration for this event has not opened yet').waitFor()

    await letOpen(-5, 5)
    await page.reload()
    await page.getByText('Registration closes on').waitFor()
    await register.click()
    await notified(page, `You take part in the draw for “A ${clock} dinner”.`)
    await sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${id}`
    await page.getByText('✓ You have a seat.').waitFor({ timeout: 20_000 })
  })
}
