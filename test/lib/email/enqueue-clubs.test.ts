import { writeEmails } from '#lib/email/batches.js'
import { claimEmails, recordOutcomes } from '#lib/email/emails.js'
import { enqueueNews } from '#lib/email/enqueue-clubs.js'
import { templates } from '#lib/email/templates.js'
import { assertMessage } from '../../assertions.ts'
import { buildWithoutSender, insert, MAIL, type Person, person, testConfig } from '../../helper.ts'
import { AGENDA_EVENT, EVENT } from '../../operations.ts'
import t from '../../suite.ts'

const app = await buildWithoutSender(t, MAIL)
const { sql } = app
t.beforeEach(() => sql`TRUNCATE emails, email_batches, clubs CASCADE`)

const verified = { email_verified_at: new Date() }

/** A club with a head whose address is verified. */
async function clubWithHead () {
  const id = await insert(app, 'clubs', { name: 'Chess Club' })
  const head = await person(app, 'CLUB_HEAD', { ...verified, club_id: id })
  await sql`UPDATE clubs SET club_head_id = ${head.id} WHERE id = ${id}`
  const join = (one: Person) => one.inject('PUT', `/me/clubs/${id}`, {})
  const decide = (one: Person, body: object, by = head) =>
    by.inject('PUT', `/club-pages/${id}/members/${one.id}`, body)
  return { id, head, join, decide }
}

/** The same with a member. */
async function clubWithMember () {
  const club = await clubWithHead()
  const ada = await person(app, 'STUDENT', verified)
  await club.join(ada)
  await club.decide(ada, { state: 'member' })
  return { ...club, ada }
}

interface StoredEmail {
  id: string
  template: 'club-request' | 'club-decision' | 'club-news'
  userId: string
  data: any
  createdAt: Date
}

/** What an email would say now. */
function compose (row: StoredEmail, variables: object = {}) {
  const email = { ...row, key: null, attempts: 1 }
  const config = { ...testConfig(MAIL), ...variables }
  const recipient = { email: 'ada@example.org', isVerified: true, firstName: 'Ada', lastName: 'Lovelace' }
  return templates[row.template](email, { sql, config, recipient })
}

/** The emails in the outbox: their recipients, and what they would say now. */
async function emails (variables: object = {}) {
  await sql`UPDATE email_batches SET due_at = now() - interval '1 s' WHERE due_at <> 'infinity'`
  await writeEmails(sql)
  const rows = await sql<StoredEmail[]>`
    SELECT id, template, user_id AS "userId", data, created_at AS "createdAt" FROM emails ORDER BY id
  `
  return Promise.all(rows.map(async row => {
    const content = await compose(row, variables)
    return { to: row.userId, subject: content?.subject, text: JSON.stringify(content?.paragraphs) }
  }))
}

t.test('Organizers are told who asks to join, in one email a day', async t => {
  const { id, head, join } = await clubWithHead()
  const [ada, bea] = [await person(app, 'STUDENT', { first_name: 'Zora' }), await person(app)]
  await join(ada)
  await join(bea)
  await join(ada)
  const [email, ...others] = await emails()
  t.strictSame([email?.to, email?.subject, others], [head.id, 'Requests to join Chess Club', []])
  t.match(email?.text, 'Zora')
  t.match(email?.text, `https://app.example.org/clubs/${id}/members`)
  t.notMatch((await emails({ FRONTEND_URL: [] }))[0]?.text, 'http')
  await Promise.all(Array.from({ length: 20 }, async () => join(await person(app))))
  t.match((await emails()).at(-1)?.text, 'There are more requests.')
  await sql`UPDATE club_members SET state = 'member' WHERE club_id = ${id} AND state = 'requested'`
  t.equal((await emails()).at(-1)?.subject, undefined, 'nobody is left')
})

t.test('Decisions that follow one another leave one email of each kind', async t => {
  const { id, decide, ada } = await clubWithMember()
  for (let n = 0; n < 10; n++) {
    await decide(ada, { office: 'deputy' })
    t.equal((await ada.inject('PUT', `/me/clubs/${id}/office`, { accept: true })).statusCode, 200)
    t.equal((await decide(ada, { office: null })).statusCode, 200)
  }
  t.strictSame((await emails()).filter(({ to }) => to === ada.id).map(({ subject }) => subject), [
    'You are a member of Chess Club', undefined, 'You no longer organize Chess Club',
  ])
})

t.test('Admins are told about requests in a club without organizers', async t => {
  const id = await insert(app, 'clubs')
  const admin = await person(app, 'ADMIN', verified)
  await (await person(app)).inject('PUT', `/me/clubs/${id}`, {})
  t.ok((await emails()).some(({ to, subject }) => to === admin.id && subject?.startsWith('Requests to join')))
})

/** The ids of the people who would get an email about requests now. */
const asked = async () =>
  (await emails()).filter(({ subject }) => subject?.startsWith('Requests to join')).map(({ to }) => to)

t.test('Admins are told about requests that no organizer gets', async t => {
  const ways: Record<string, (...args: [head: Person, id: string, admin: Person]) => PromiseLike<unknown>> = {
    'is not verified': head => sql`UPDATE users SET email_verified_at = NULL WHERE id = ${head.id}`,
    'has turned them off': head => head.inject('PUT', '/me/notifications', { notifications: { club: false } }),
    leaves: (head, id) => head.inject('DELETE', `/me/clubs/${id}`),
    resigns: (head, id) => head.inject('PUT', `/club-pages/${id}/members/${head.id}`, { office: null }),
    'is moved by an admin': (head, _id, admin) => admin.inject('PUT', `/users/${head.id}`, { clubId: null }),
    'is erased': head => head.inject('DELETE', '/me', { currentPassword: null }),
  }
  for (const [way, end] of Object.entries(ways)) {
    for (const isBefore of [true, false]) {
      await sql`TRUNCATE emails, email_batches, clubs CASCADE`
      const admin = await person(app, 'ADMIN', verified)
      const { id, head, join } = await clubWithHead()
      if (isBefore) await end(head, id, admin)
      await join(await person(app))
      if (!isBefore) await end(head, id, admin)
      t.strictSame(await asked(), [admin.id], `${way}, ${isBefore ? 'before' : 'after'} the request`)
    }
  }
  await sql`TRUNCATE emails, email_batches, clubs CASCADE`
  const admin = await person(app, 'ADMIN', verified)
  const { id, head, join } = await clubWithHead()
  await person(app, 'CLUB_HEAD', { club_id: id })
  await join(await person(app))
  t.strictSame(await asked(), [head.id], 'nobody else')
  // A new organizer has no email of this batch.
  await person(app, 'CLUB_HEAD', { club_id: id, ...verified })
  await head.inject('DELETE', `/me/clubs/${id}`)
  t.strictSame(await asked(), [admin.id], 'the only recipient has handed over the club')
})

t.test('Admins are told about requests that the last organizer has left', async t => {
  const ways: Record<string, (...args: [head: Person, id: string, admin: Person]) => PromiseLike<unknown>> = {
    leaves: (head, id) => head.inject('DELETE', `/me/clubs/${id}`),
    resigns: (head, id) => head.inject('PUT', `/club-pages/${id}/members/${head.id}`, { office: null }),
    'is removed': (head, id, admin) =>
      admin.inject('PUT', `/club-pages/${id}/members/${head.id}`, { state: 'refused' }),
    'is erased': head => head.inject('DELETE', '/me', { currentPassword: null }),
  }
  for (const [way, end] of Object.entries(ways)) {
    for (const isLast of [true, false]) {
      await sql`TRUNCATE emails, email_batches, clubs CASCADE`
      const admin = await person(app, 'ADMIN', verified)
      const { id, head, join } = await clubWithHead()
      const deputy = await person(app, 'CLUB_HEAD', { club_id: id, ...verified })
      await join(await person(app))
      t.strictSame((await asked()).sort(), [head.id, deputy.id].sort())
      await sql`UPDATE emails SET status = 'sent', settled_at = now()`
      if (isLast) await deputy.inject('DELETE', `/me/clubs/${id}`)
      await end(head, id, admin)
      await sql`DELETE FROM emails WHERE status = 'sent'`
      t.strictSame(await asked(), isLast ? [admin.id] : [], way)
    }
  }
  await sql`TRUNCATE emails, email_batches, clubs CASCADE`
  await person(app, 'ADMIN', verified)
  const { id, head, join, decide } = await clubWithHead()
  const member = await person(app)
  await join(member)
  await decide(member, { state: 'member' })
  await sql`TRUNCATE emails, email_batches`
  await head.inject('DELETE', `/me/clubs/${id}`)
  t.strictSame([...await sql`SELECT FROM email_batches`], [], 'nobody asks')
})

t.test('Of two emails about requests that have waited, one says everything', async t => {
  const { head, join } = await clubWithHead()
  await join(await person(app, 'STUDENT', { first_name: 'Zora' }))
  await emails()
  // The mail server is down for more than a day.
  await sql`UPDATE email_batches SET told_at = now() - interval '25 hours'`
  await join(await person(app, 'STUDENT', { first_name: 'Yuri' }))
  const all = await emails()
  t.strictSame(all.map(({ to, subject }) => [to, subject]),
    [[head.id, undefined], [head.id, 'Requests to join Chess Club']])
  t.match(all[1]?.text, /Zora.*Yuri/)
  const [last] = await sql`SELECT max(id::text) AS id FROM emails`
  await sql`UPDATE emails SET status = 'sent', settled_at = now() WHERE id = ${last!.id}`
  t.equal((await emails())[0]?.subject, undefined, 'even if the later one was sent first')
  await sql`UPDATE emails SET status = 'failed' WHERE id = ${last!.id}`
  t.equal((await emails())[0]?.subject, 'Requests to join Chess Club')
})

t.test('An open club asks nobody', async t => {
  const { id, join } = await clubWithHead()
  await sql`INSERT INTO club_details VALUES (${id}, 'open')`
  await join(await person(app))
  t.strictSame(await emails(), [])
})

t.test('Nobody accepts an office with an address that they have not verified: it becomes public', async t => {
  const { id, join, decide } = await clubWithHead()
  const ada = await person(app)
  const answer = (accept: boolean) => ada.inject('PUT', `/me/clubs/${id}/office`, { accept })
  const offer = () => decide(ada, { office: 'deputy' })
  await join(ada)
  await decide(ada, { state: 'member' })
  await offer()
  assertMessage(t, await answer(true), 409, 'Verify your email address first')
  t.equal((await answer(false)).statusCode, 200, 'anybody can decline')
  await offer()
  await sql`UPDATE users SET email_verified_at = now() WHERE id = ${ada.id}`
  t.equal((await answer(true)).statusCode, 200)
})

t.test('A person is told about each decision once, with its reason', async t => {
  const { id, head, join, decide } = await clubWithHead()
  const ada = await person(app, 'STUDENT', verified)
  const last = async () => (await emails()).filter(({ to }) => to === ada.id).at(-1)
  const count = async () => (await emails()).filter(({ to }) => to === ada.id).length
  await join(ada)
  await decide(ada, { state: 'member' })
  await decide(ada, { state: 'member' })
  t.strictSame([(await last())?.subject, await count()], ['You are a member of Chess Club', 1])
  await decide(ada, { office: 'deputy' })
  await decide(ada, { office: 'deputy' })
  t.strictSame([(await last())?.subject, await count()], ['Will you help to run Chess Club?', 2])
  t.match((await last())?.text, 'You can answer until')
  // Emails that wait would be replaced.
  await sql`UPDATE emails SET attempts = 1`
  await decide(ada, { office: 'head' })
  t.equal((await last())?.subject, 'Will you lead Chess Club?')
  await sql`UPDATE emails SET attempts = 1`
  await decide(ada, { office: null })
  t.equal((await last())?.subject, undefined, 'a withdrawn offer')
  await decide(ada, { office: 'deputy' })
  await ada.inject('PUT', `/me/clubs/${id}/office`, { accept: true })
  t.equal(await count(), 3, 'the same offer is told once a day, and nobody is told what they did')
  await decide(ada, { office: null })
  t.equal((await last())?.subject, 'You no longer organize Chess Club')
  await decide(ada, { office: 'deputy' })
  t.equal((await last())?.subject, 'Will you help to run Chess Club?', 'the office was ended by mistake')
  await decide(ada, { state: 'refused', reason: 'The room is full.' })
  t.equal((await last())?.subject, 'You are no longer a member of Chess Club')
  t.match((await last())?.text, 'The room is full.')
  await sql`UPDATE club_members SET refused_at = now() - interval '8 days' WHERE user_id = ${ada.id}`
  await join(ada)
  t.equal((await last())?.subject, undefined, 'the person has asked again')
  await decide(ada, { state: 'refused' })
  t.equal((await last())?.subject, 'Your request to join Chess Club')
  t.notMatch((await last())?.text, 'wrote')
  t.notOk((await emails()).some(({ subject }) => subject?.startsWith('You are no longer')), 'the removal is long ago')
  await sql`DELETE FROM club_members WHERE user_id = ${ada.id}`
  t.equal((await last())?.subject, undefined)
  await head.inject('PUT', '/me/notifications', { notifications: { club: false } })
  await join(ada)
  const told = (await emails()).filter(({ to, subject }) => to === head.id && subject !== undefined)
  t.strictSame(told, [], 'the switch turns them off')
})

t.test('The same offer on a different day is told again', async t => {
  const { join, decide } = await clubWithHead()
  const ada = await person(app, 'STUDENT', verified)
  await join(ada)
  for (const change of [{ state: 'member' }, { office: 'deputy' }, { office: null }]) await decide(ada, change)
  await sql`UPDATE emails SET attempts = 1, key = replace(key, (now() AT TIME ZONE 'UTC')::date::text, '2026-01-31')`
  await decide(ada, { office: 'deputy' })
  const offers = (await emails()).filter(({ subject }) => subject === 'Will you help to run Chess Club?')
  t.strictSame(offers.map(({ to }) => to), [ada.id, ada.id])
})

t.test('A head who becomes a deputy is told, whoever causes it', async t => {
  const admin = await person(app, 'ADMIN')
  const { id, head, join, decide } = await clubWithHead()
  const told = async () => (await emails()).filter(({ to }) => to === head.id).at(-1)
  await decide(head, { office: 'deputy' })
  t.strictSame(await told(), undefined, 'nobody is told what they did')
  await sql`UPDATE clubs SET club_head_id = ${head.id} WHERE id = ${id}`
  await decide(head, { office: 'deputy' }, admin)
  t.equal((await told())?.subject, 'You are a deputy of Chess Club')
  t.match((await told())?.text, `https://app.example.org/clubs/${id}`)

  await sql`TRUNCATE emails, email_batches`
  await sql`UPDATE clubs SET club_head_id = ${head.id} WHERE id = ${id}`
  const ada = await person(app, 'STUDENT', verified)
  await join(ada)
  await decide(ada, { state: 'member' })
  await decide(ada, { office: 'head' }, admin)
  await sql`TRUNCATE emails, email_batches`
  t.equal((await ada.inject('PUT', `/me/clubs/${id}/office`, { accept: true })).json().club.office, 'head')
  const [email, ...others] = await emails()
  t.strictSame([email?.to, email?.subject, others], [head.id, 'You are a deputy of Chess Club', []])
  await decide(head, { office: 'head' }, ada)
  await head.inject('PUT', `/me/clubs/${id}/office`, { accept: true })
  t.equal((await emails())[0]?.subject, undefined, 'the head again')
})

t.test('Members are told about new events of their club, in one email a day', async t => {
  const { id, head, join, decide } = await clubWithHead()
  const ada = await person(app, 'STUDENT', verified)
  const quiet = await person(app, 'STUDENT', verified)
  const unverified = await person(app)
  const asking = await person(app, 'STUDENT', verified)
  for (const one of [ada, quiet, unverified]) {
    await join(one)
    await decide(one, { state: 'member' })
  }
  await quiet.inject('PUT', `/me/clubs/${id}`, { news: false })
  await join(asking)
  await sql`TRUNCATE emails, email_batches`
  const news = async () => (await emails()).filter(({ subject }) => subject !== undefined)

  await head.inject('POST', '/events', { ...EVENT, data: '2020-01-01T10:00:00Z' })
  t.strictSame([...await sql`SELECT FROM email_batches`], [], 'a past event')
  const blitz = { ...EVENT, title: 'Blitz', data: '2031-01-01T10:00:00Z' }
  const { event } = (await head.inject('POST', '/events', blitz)).json()
  await head.inject('POST', '/events', { ...EVENT, data: '2020-01-01T10:00:00Z' })
  const [first, ...others] = await news()
  t.strictSame([first?.to, first?.subject, others], [ada.id, 'Chess Club: Blitz', []])
  t.match(first?.text, `https://app.example.org/clubs/${id}`)

  await sql`TRUNCATE emails`
  await head.inject('POST', '/agenda', AGENDA_EVENT)
  const dates = Array.from({ length: 19 }, (_, n) => new Date(2e12 + n * 864e5).toISOString())
  await head.inject('POST', `/agenda/${event.id}/copies`, { dates })
  const waiting = await sql`
    SELECT due_at - told_at >= interval '1 day' AS "isLater" FROM email_batches WHERE template = 'club-news'
  `
  t.strictSame([...waiting], [{ isLater: true }])
  const [second, ...more] = await news()
  t.strictSame([second?.to, second?.subject, more], [ada.id, 'New events of Chess Club', []])
  t.match(second?.text, 'Room 1')
  t.notMatch(second?.text, 'There are more')
  t.notMatch(second?.text, /Blitz.*1 January 2031/, 'known from the first email')
  await head.inject('POST', '/events', { ...EVENT, data: '2031-01-01T10:00:00Z' })
  t.match((await news())[0]?.text, 'There are more new events.')

  await ada.inject('PUT', '/me/notifications', { notifications: { clubNews: false } })
  t.strictSame(await news(), [], 'the switch turns them off')
  await ada.inject('PUT', '/me/notifications', { notifications: { clubNews: true } })
  await ada.inject('DELETE', `/me/clubs/${id}`)
  t.strictSame(await news(), [], 'the person has left')
})

t.test('An email about copies of an event names the first copy as well', async t => {
  const { head } = await clubWithMember()
  const { event } = (await head.inject('POST', '/events', { ...EVENT, data: '2020-01-01T10:00:00Z' })).json()
  const dates = Array.from({ length: 50 }, (_, n) => new Date(2e12 + n * 864e5).toISOString())
  await head.inject('POST', `/agenda/${event.id}/copies`, { dates })
  const news = (await emails()).find(({ subject }) => subject === 'New events of Chess Club')
  t.match(news?.text, '18 May 2033')
  t.match(news?.text, 'There are more new events.')
})

t.test('An email about many events with long titles stays short', async t => {
  const { head } = await clubWithMember()
  await sql`TRUNCATE emails, email_batches`
  const long = { ...EVENT, title: 'x'.repeat(100_000), data: '2031-01-01T10:00:00Z' }
  const { event } = (await head.inject('POST', '/events', long)).json()
  for (const year of [2032, 2033, 2034]) {
    const dates = Array.from({ length: 9 }, (_, n) => `${year}-01-0${n + 1}T10:00:00.000Z`)
    t.equal((await head.inject('POST', `/agenda/${event.id}/copies`, { dates })).statusCode, 201)
  }
  const [email] = await emails()
  t.match(email!.text, 'There are more new events.')
  t.ok(email!.text.length < 100_000, '20 titles of 4,000 characters')
})

t.test('An email about many events remembers the events that it names, and the next one names others', async t => {
  const { id, head, ada } = await clubWithMember()
  await sql`TRUNCATE emails, email_batches`
  await head.inject('POST', '/events', { ...EVENT, title: 'Round 0', data: '2031-01-01T00:00:00Z' })
  await emails()
  await sql`
    INSERT INTO events (title, description, date, club_id)
    SELECT 'Round ' || n, '', '2031-01-01T00:00:00Z'::timestamptz + make_interval(days => n), ${id}
    FROM generate_series(1, 10000) AS n
  `
  const [email] = await claimEmails(sql, { account: 9, bulk: 9 }) as StoredEmail[]
  const content = await compose(email!)
  const named = (texts: unknown) => [...JSON.stringify(texts).matchAll(/Round (\d+)/g)].map(([, n]) => Number(n))
  const rounds = (from: number) => Array.from({ length: 20 }, (_, n) => from + n)
  t.strictSame(named(content?.paragraphs), rounds(0))
  const { announced } = content as { announced: { events: string[] } }
  t.equal(announced.events.length, 20, 'with the ids of all, the next email takes too long')
  await recordOutcomes(sql, [{ id: email!.id, status: 'sent', attempts: 1, announced }])
  const next = await compose({ ...email!, id: ada.id })
  t.strictSame(named(next?.paragraphs), rounds(20))
})

t.test('Members are told about an event once, though emails have waited', async t => {
  const { head } = await clubWithMember()
  await sql`TRUNCATE emails, email_batches`
  const addEvent = (title: string) => head.inject('POST', '/events', { ...EVENT, title, data: '2031-01-01T10:00:00Z' })
  await addEvent('Blitz')
  await emails()
  // The first email is composed after this, so it tells both.
  await addEvent('Rapid')
  await emails()
  const claim = () => claimEmails(sql, { account: 9, bulk: 9 })
  const claimed = await claim()
  t.equal(claimed.length, 1, 'an email waits for the one before')
  const [email] = claimed as [typeof claimed[0]]
  const content = await compose(email as StoredEmail)
  t.match(JSON.stringify(content?.paragraphs), /Blitz.*Rapid/)
  await recordOutcomes(sql, [{ id: email.id, status: 'sent', attempts: 1, announced: content!.announced! }])
  const untold = async () => (await emails()).map(({ subject }) => subject).filter(subject => subject !== undefined)
  t.strictSame(await untold(), ['New events of Chess Club'], 'only the email itself says it')
  await addEvent('Simul')
  t.strictSame(await untold(), ['New events of Chess Club', 'Chess Club: Simul'])
})

t.test('The second part of much news does not wait for tomorrow if there is an event in between', async t => {
  const { id, head } = await clubWithHead()
  await sql`
    WITH members AS (
      INSERT INTO users (email, password, first_name, last_name, email_verified_at)
      SELECT n || '@news.example.org', '!', 'Ada', 'Lovelace', now() FROM generate_series(1, 601) AS n RETURNING id
    )
    INSERT INTO club_members (user_id, club_id, state) SELECT id, ${id}, 'member' FROM members
  `
  const addEvent = (title: string) => head.inject('POST', '/events', { ...EVENT, title, data: '2031-01-01T10:00:00Z' })
  await addEvent('Blitz')
  await sql`UPDATE email_batches SET due_at = now() - interval '1 s'`
  await writeEmails(sql)
  await addEvent('Rapid')
  await sql`UPDATE emails SET status = 'sent', settled_at = now()`
  await writeEmails(sql)
  t.strictSame([...await sql`SELECT count(DISTINCT user_id)::int AS people FROM emails`], [{ people: 601 }])
  const [last] = await sql<[StoredEmail]>`
    SELECT id, template, user_id AS "userId", data, created_at AS "createdAt" FROM emails WHERE status = 'pending'
  `
  const content = await compose(last)
  t.match(JSON.stringify(content?.paragraphs), /Blitz.*Rapid/)
  const waiting = await sql`
    SELECT cardinality(user_ids) AS people, due_at - now() > interval '23 h' AS "isTomorrow"
    FROM email_batches WHERE due_at <> 'infinity'
  `
  t.strictSame([...waiting], [{ people: 601, isTomorrow: true }], 'others hear of the second event tomorrow')
})

t.test('A new event whose date was wrong is news as soon as the date is right', async t => {
  const { head, ada } = await clubWithMember()
  const subjects = async () => (await emails()).flatMap(({ to, subject = '' }) =>
    to === ada.id && subject.startsWith('Chess Club') ? [subject] : [])
  const past = { ...AGENDA_EVENT, date: '2020-01-01T18:00:00Z', endsAt: null }
  const create = async (title: string) => (await head.inject('POST', '/agenda', { ...past, title })).json().event.id
  const [agenda, contract, old] = [await create('Agenda'), await create('Contract'), await create('Old')]
  await sql`UPDATE events SET created_at = now() - interval '2 days' WHERE id = ${old}`
  t.strictSame(await subjects(), [])
  await head.inject('PUT', `/agenda/${agenda}`, { date: '2999-01-01T18:00:00Z' })
  t.strictSame(await subjects(), ['Chess Club: Agenda'])
  await sql`TRUNCATE emails`
  await head.inject('PUT', `/agenda/${old}`, { date: '2999-01-01T18:00:00Z' })
  await head.inject('PUT', `/events/${contract}`, { data: '2999-01-01T18:00:00Z' })
  t.strictSame(await subjects(), ['Chess Club: Contract'])
})

t.test('News begin with the first event, whichever transaction ends first', async t => {
  const { id, head } = await clubWithMember()
  await sql`TRUNCATE emails, email_batches`
  const add = (title: string, createdAt: string) => sql`
    WITH created AS (
      INSERT INTO events (title, description, date, club_id, created_at)
      VALUES (${title}, '', '2031-01-01T10:00Z', ${id}, ${createdAt}) RETURNING *
    )
    ${enqueueNews(sql, app.outbox, sql`SELECT * FROM created`, head.id)}
  `
  await add('Rapid', '2026-01-01T10:00:00.001Z')
  await add('Blitz', '2026-01-01T10:00:00Z')
  await add('Simul', '2026-01-01T10:00:00.002Z')
  t.match((await emails())[0]?.text, /Rapid.*Blitz.*Simul/)
})
