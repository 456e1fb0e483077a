// Three people at once: somebody joins a club, its head decides and hands over an office, and a visitor looks on.
import { endOfButtons, entry, fits, notified, startExample } from '../example.ts'

const { origin, sql, browser, walk, signIn, tokenOf, send } = await startExample()
const [head, noor] = await Promise.all(['head', 'noor'].map(name => tokenOf(`${name}@demo.example.org`)))
const [{ id, name }] = await sql<[{ id: string, name: string }]>`
  SELECT clubs.id, name FROM users JOIN clubs ON clubs.id = club_id WHERE email = 'head@demo.example.org'
`
const { id: noorId } = (await send('GET', '/auth/me', noor!)).user
const setJoining = (joining: string) => send('PUT', `/club-pages/${id}`, head!, { joining })

/** A page of a second person in a browser of their own. */
async function secondPage (t: { teardown: (close: () => unknown) => void }, who: string, to: string) {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, locale: 'en-GB' })
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.goto(origin)
  await page.waitForSelector('h1')
  await signIn(page, who, { to })
  return page
}

walk('A person asks, the head accepts and offers an office, and the office ends', {
  refusals: ['GET /club-pages/{id}/members 403'],
}, async (t, page) => {
  await signIn(page, 'noor', { to: `/clubs/${id}` })
  await page.getByRole('button', { name: 'Ask to join' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill('I bring a soldering iron.')
  await page.getByRole('dialog').getByRole('button', { name: 'Ask to join' }).click()
  await notified(page, `You have asked to join “${name}”. This page will tell you the decision.`)
  await page.getByText('The organizers have not decided yet').waitFor()

  const organizer = await secondPage(t, 'head', `/clubs/${id}/members`)
  const request = entry(organizer, 'Noor Rahimi')
  await request.getByText('I bring a soldering iron.').waitFor()
  t.equal(await fits(organizer), true, 'nothing is wider than a phone')
  await request.getByRole('button', { name: 'Accept' }).click()
  await notified(organizer, 'Noor Rahimi is a member now.')
  // The public number of members has changed, which the page of the club follows.
  await page.getByText('This page has changed.').waitFor({ timeout: 10_000 })
  await page.getByRole('button', { name: 'Show' }).click()
  await page.getByText("✓ You're a member.").waitFor()

  await organizer.getByRole('button', { name: 'Offer an office to Noor Rahimi' }).click()
  await organizer.getByRole('dialog').getByRole('button', { name: 'Offer' }).click()
  await notified(organizer, 'Noor Rahimi can accept the office now.')
  t.ok(await endOfButtons(organizer) <= 390, 'no button is cut off')
  await page.goto(`${origin}/me`)
  await page.getByText(`You can become deputy of “${name}”`).waitFor()
  t.equal(await page.getByRole('link', { name: 'My events' }).count(), 0)
  await page.getByRole('button', { name: `Accept the office in ${name}` }).click()
  await notified(page, `You organize “${name}” now.`)
  await page.getByRole('link', { name: 'My events' }).waitFor()
  await page.getByRole('link', { name: 'Members' }).click()
  await page.getByRole('heading', { name }).waitFor()

  await organizer.reload()
  await organizer.getByRole('button', { name: 'End the office of Noor Rahimi' }).click()
  await organizer.getByRole('dialog').getByRole('button', { name: 'End the office' }).click()
  await notified(organizer, 'Noor Rahimi is a plain member now.')
  await page.reload()
  await page.getByRole('heading', { name: 'No access' }).waitFor()
  t.equal(await page.getByRole('link', { name: 'My events' }).count(), 0, 'the new role needs no new sign-in')

  await page.goto(`${origin}/clubs/${id}`)
  await page.getByRole('button', { name: `Leave ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click()
  await notified(page, `You have left “${name}”.`)
  await page.getByRole('button', { name: 'Ask to join' }).waitFor()
})

walk('A person whose address is not verified reads that no email tells the decision', {}, async (_t, page) => {
  const isVerified = (verified: boolean) => sql`
    UPDATE users SET email_verified_at = ${verified ? sql`now()` : null} WHERE email = 'noor@demo.example.org'
  `
  await isVerified(false)
  await signIn(page, 'noor', { to: `/clubs/${id}` })
  await page.getByRole('button', { name: 'Ask to join' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Ask to join' }).click()
  await page.getByText('so you get no emails about your events and clubs').waitFor()
  await page.getByRole('button', { name: 'Withdraw' }).click()
  await page.getByRole('button', { name: 'Ask to join' }).waitFor()
  await isVerified(true)
})

walk('A refusal tells its reason, and when to ask again', {}, async (_t, page) => {
  await send('PUT', `/me/clubs/${id}`, noor!, {})
  await signIn(page, 'head', { to: `/clubs/${id}/members` })
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Refuse' }).click()
  await page.getByText('Noor Rahimi sees it on the page of the club.').waitFor()
  await page.getByRole('dialog').getByLabel('Reason').fill('The room is full.')
  await page.getByRole('dialog').getByRole('button', { name: 'Refuse' }).click()
  await notified(page, 'Noor Rahimi has been refused.')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await notified(page, "You've been signed out.")
  await signIn(page, 'noor', { to: `/clubs/${id}` })
  await page.getByText('The organizers said no: “The room is full.” You can ask again on').waitFor()
  await sql`UPDATE club_members SET changed_at = now() - interval '8 days' WHERE state = 'refused'`
  await page.reload()
  await page.getByRole('button', { name: 'Ask to join' }).waitFor()
})

walk('An organizer whose page is old does not remove a member by refusing the request', {}, async (_t, page) => {
  await sql`UPDATE club_members SET state = 'requested' WHERE user_id = ${noorId} AND club_id = ${id}`
  await signIn(page, 'head', { to: `/clubs/${id}/members` })
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Refuse' }).click()
  await send('PUT', `/club-pages/${id}/members/${noorId}`, head!, { state: 'member' })
  await page.getByRole('dialog').getByRole('button', { name: 'Refuse' }).click()
  await page.getByText('Noor Rahimi has been accepted already.').waitFor()
  await sql`
    UPDATE club_members SET state = 'refused', refused_at = now() WHERE user_id = ${noorId} AND club_id = ${id}
  `
})

walk('A decision about a request that was withdrawn says so, and the request is gone', {
  refusals: [`PUT /club-pages/{id}/members/${noorId} 404`],
}, async (t, page) => {
  await sql`DELETE FROM club_members WHERE user_id = ${noorId} AND club_id = ${id}`
  await send('PUT', `/me/clubs/${id}`, noor!, {})
  await signIn(page, 'head', { to: `/clubs/${id}/members` })
  await entry(page, 'Noor Rahimi').waitFor()
  await send('DELETE', `/me/clubs/${id}`, noor!)
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Accept' }).click()
  await notified(page, 'Member not found')
  t.equal(await entry(page, 'Noor Rahimi').count(), 0)
  await sql`
    INSERT INTO club_members (user_id, club_id, state, refused_at) VALUES (${noorId}, ${id}, 'refused', now())
  `
})

walk('A visitor joins an open club, and sees its events among theirs', {}, async (t, page) => {
  await setJoining('open')
  await page.goto(`${origin}/clubs/${id}`)
  await page.getByRole('button', { name: 'Join' }).click()
  await page.getByRole('link', { name: 'Sign up', exact: true }).last().click()
  for (const [label, value] of Object.entries({
    'First name': 'Wangari', 'Last name': 'Maathai', Email: 'wangari@example.org', Password: 'green belt movement',
  })) await page.getByLabel(label, { exact: true }).fill(value)
  await page.getByRole('button', { name: 'Sign up' }).click()
  await page.getByText("✓ You're a member.").waitFor()
  await page.goto(`${origin}/events`)
  await page.getByLabel('Club').selectOption('My clubs')
  await page.waitForURL('**/events?club=mine')
  const clubs = page.locator('.events .club')
  await clubs.filter({ hasNotText: name }).first().waitFor({ state: 'detached' })
  t.not(await clubs.count(), 0)
  await setJoining('closed')
  await page.goto(`${origin}/clubs/${id}`)
  await page.getByRole('button', { name: `Leave ${name}` }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click()
  await page.getByText('This club takes no new members.').waitFor()
  await setJoining('request')
})

walk('An organizer edits the page of the club, as it is now', {}, async (t, page) => {
  await signIn(page, 'head', { to: `/clubs/${id}` })
  await send('PUT', `/club-pages/${id}`, head!, { description: 'We build robots.' })
  await page.getByRole('button', { name: 'Edit the page' }).click()
  t.equal(await page.getByRole('dialog').getByLabel('Description').inputValue(), 'We build robots.')
  await page.getByRole('dialog').getByLabel('Description').fill('We build robots that dance.')
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
  await notified(page, 'The page has been saved.')
  await page.getByText('We build robots that dance.').waitFor()
})

walk('An admin sees first which clubs need one', {}, async (t, page) => {
  await sql`UPDATE club_members SET changed_at = now() WHERE state = 'requested'`
  await sql`UPDATE club_members SET state = 'requested', changed_at = now() - interval '8 days' WHERE state = 'refused'`
  await signIn(page, 'admin', { to: '/admin/clubs' })
  const urgent = page.locator('section', { hasText: 'Clubs that need you' })
  await urgent.getByText('3 requests, the oldest of').waitFor()
  t.equal(await urgent.getByRole('heading', { level: 3 }).textContent(), name)
  await page.setViewportSize({ width: 390, height: 844 })
  t.equal(await fits(page), true, 'nothing is wider than a phone')
  await urgent.getByRole('link', { name: 'Members' }).click()
  await entry(page, 'Noor Rahimi').getByRole('button', { name: 'Accept' }).click()
  await notified(page, 'Noor Rahimi is a member now.')
  await page.goto(`${origin}/admin/clubs`)
  await page.getByRole('heading', { name: 'All clubs' }).waitFor()
})
