import { createHash } from 'node:crypto'

import { drawDue, drawSeats, runDraws, type TellDraw } from '#lib/agenda/draws.js'
import { tellDraw } from '#lib/email/enqueue-seats.js'
import { createLogger } from '#lib/http/logger.js'
import { assertInvalid, assertMessage } from '../assertions.ts'
import { build, inject, insert, MAIL, type Person, person, untilBlocked } from '../helper.ts'
import { AGENDA_EVENT } from '../operations.ts'
import t, { type Test } from '../suite.ts'

/** The log of the service. */
let log = ''
const app = await build(t, { ...MAIL, DATABASE_TIMEOUT: '60' }, createLogger('info', { write (line) { log += line } }))
const { sql, outbox } = app

const HOUR = 3_600_000
const at = (hours: number) => new Date(Math.ceil(Date.now() / HOUR + hours) * HOUR).toISOString()

const club = await insert(app, 'clubs', { name: 'Chess' })
const head = await person(app, 'CLUB_HEAD', { club_id: club })
const people = await Promise.all(Array.from({ length: 12 }, () =>
  person(app, 'STUDENT', { email_verified_at: new Date() })))
const [ada, bob, cleo, dan] = people as [Person, Person, Person, Person]

const addEvent = (fields: object = {}) => insert(app, 'events', { date: at(48), club_id: club, ...fields })
const put = (id: string, changes: object) => head.inject('PUT', `/agenda/${id}`, changes)
const register = (who: Person, id: string) => who.inject('POST', `/events/${id}/register`)
const answer = (who: Person, id: string, coming: boolean) => who.inject('PUT', `/me/seats/${id}`, { coming })

interface Listed { registrationId: string, userId: string, state: string, position: number | null, answeredAt: string }
const list = async (id: string): Promise<Listed[]> => (await head.inject('GET', `/agenda/${id}/seats`)).json().seats

/** The seats of people in short: `seated`, `waiting 1`. */
async function seats (id: string) {
  const all = await list(id)
  return people.flatMap(({ id }) => all.filter(({ userId }) => userId === id))
    .map(({ state, position }) => position === null ? state : `${state} ${position}`)
}

const eventOf = async (id: string) => (await inject(app, 'GET', `/agenda/${id}`)).json().event
const drawOf = async (id: string) => (await inject(app, 'GET', `/agenda/${id}/draw`)).json().draw

/** An event with a draw of its seats. */
async function withDraw (capacity = 3, fields: object = {}) {
  const id = await addEvent(fields)
  const response = await put(id, { capacity, drawAt: at(24) })
  if (response.statusCode !== 200) throw new Error(response.body)
  return id
}

const tell = tellDraw(outbox)

/** Lets the draw be due, and draws. */
async function draw (id: string) {
  await sql`UPDATE event_details SET draw_at = now() - interval '1 second' WHERE event_id = ${id}`
  await drawDue({ sql, log: app.log, tell })
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/** Checks a draw as everybody can: by its public response only. */
function assertFair (t: Test, { commitment, seed, order }: { commitment: string, seed: string, order: string[] }) {
  t.equal(sha256(seed), commitment)
  const lots = order.map(id => sha256(`${seed} ${id}`))
  t.strictSame(lots, [...lots].sort())
}

t.test('A draw is set, moved and cancelled', async t => {
  t.test('only at a time that is possible, with a number of seats', async t => {
    const drawAt = at(24)
    const id = await addEvent()
    const issue = async (changes: object, path: string, message: string) => {
      const response = await put(id, changes)
      assertInvalid(t, response, [path])
      t.equal(response.json().errors[0].message, message)
    }
    await issue({ drawAt }, 'drawAt', 'needs a number of seats')
    await put(id, { capacity: 2 })
    await issue({ drawAt, capacity: null }, 'drawAt', 'needs a number of seats')
    await issue({ drawAt: at(-2) }, 'drawAt', 'must be in the future')
    await issue({ drawAt: at(49) }, 'drawAt', 'must not be after the start of the event')
    await issue({ drawAt, opensAt: drawAt }, 'drawAt', 'must be after registration opens')
    t.match((await put(id, { drawAt })).json().event, { drawAt, drawnAt: null, seatsLeft: null })
    await issue({ capacity: null }, 'capacity', 'cannot be removed before the draw')
    await issue({ date: at(23) }, 'drawAt', 'must not be after the start of the event')
    await issue({ opensAt: at(25) }, 'drawAt', 'must be after registration opens')
    // A form sends all fields.
    t.equal((await put(id, { title: 'Open evening', drawAt, capacity: 3, place: 'Room 1' })).statusCode, 200)
    await head.inject('PUT', `/events/${id}`, { data: at(20) })
    const all = { date: at(20), drawAt, capacity: 3, opensAt: null }
    t.equal((await put(id, { title: 'Open day', ...all })).statusCode, 200, 'and is not in its way')
    await issue({ ...all, date: at(21) }, 'drawAt', 'must not be after the start of the event')
    t.match((await put(id, { drawAt: null, capacity: null })).json().event, { drawAt: null, capacity: null })
    t.match((await put(id, { drawAt: at(10), capacity: 1 })).json().event, { drawAt: at(10), capacity: 1 })
  })

  t.test('with a new event', async t => {
    const wrong = { ...AGENDA_EVENT, drawAt: at(24) }
    assertInvalid(t, await head.inject('POST', '/agenda', wrong), ['drawAt'])
    assertInvalid(t, await head.inject('POST', '/agenda', { ...wrong, capacity: 2, drawAt: at(-2) }), ['drawAt'])
    const { event } = (await head.inject('POST', '/agenda', { ...wrong, capacity: 2 })).json()
    t.match(event, { drawAt: at(24), drawnAt: null, seatsLeft: null, capacity: 2 })
    t.match(await drawOf(event.id), { drawAt: at(24), drawnAt: null, seed: null, order: null, seats: 2 })
  })

  t.test('with the same commitment as long as people take part, who keep it from being cancelled', async t => {
    const id = await withDraw()
    const { commitment } = await drawOf(id)
    t.match(commitment, /^[0-9a-f]{64}$/)
    await register(ada, id)
    assertMessage(t, await put(id, { drawAt: null }), 409,
      'People take part in the draw, so you can move it, but not cancel it')
    await put(id, { drawAt: at(30) })
    t.match(await drawOf(id), { drawAt: at(30), commitment })
    await draw(id)
    const drawn = await drawOf(id)
    t.equal(drawn.commitment, commitment)
    assertFair(t, drawn)
    for (const drawAt of [null, at(40)]) {
      assertMessage(t, await put(id, { drawAt }), 409, 'The seats have been drawn already')
    }
    const { drawAt } = drawn
    t.match((await put(id, { drawAt, date: at(72), capacity: null })).json().event, { drawAt, capacity: null })
    t.match(await drawOf(id), { seats: null, commitment })
  })

  t.test('and a participant who does not come does not hinder that', async t => {
    const id = await withDraw()
    const { commitment } = await drawOf(id)
    await register(ada, id)
    await answer(ada, id, false)
    t.equal((await put(id, { drawAt: null })).statusCode, 200)
    assertMessage(t, await inject(app, 'GET', `/agenda/${id}/draw`), 404, 'There is no draw')
    await put(id, { drawAt: at(24) })
    t.not((await drawOf(id)).commitment, commitment)
  })

  t.test('for each copy, with a seed of its own', async t => {
    const id = await withDraw()
    await register(ada, id)
    await draw(id)
    await sql`UPDATE event_details SET draw_at = ${at(24)} WHERE event_id = ${id}`
    const dates = [at(48 + 7 * 24), at(48 + 14 * 24), at(-100)]
    const { events } = (await head.inject('POST', `/agenda/${id}/copies`, { dates })).json()
    t.strictSame(events.map(({ drawAt, drawnAt, seatsLeft }: any) => [drawAt, drawnAt, seatsLeft]), [
      [null, null, 3], [at(24 + 7 * 24), null, null], [at(24 + 14 * 24), null, null],
    ])
    const draws = await Promise.all([id, events[1].id, events[2].id].map(drawOf))
    t.equal(new Set(draws.map(({ commitment }) => commitment)).size, 3)
    t.strictSame((await register(ada, events[1].id)).statusCode, 201)
    t.strictSame(await seats(events[1].id), ['drawing'])
    await put(id, { capacity: null })
    const [copy] = (await head.inject('POST', `/agenda/${id}/copies`, { dates: [at(99)] })).json().events
    t.match(copy, { drawAt: null, capacity: null }, 'a draw needs a number of seats')
  })

  t.test('for each copy, at its start at the latest', async t => {
    const berlin = await build(t, { ...MAIL, MAIL_TIME_ZONE: 'Europe/Berlin' })
    const head = await person(berlin, 'CLUB_HEAD', { club_id: await insert(berlin, 'clubs') })
    /** The times of a copy of an event that `PUT /events/:id` may have moved. */
    async function timesOfCopy (times: object, date: string, moved?: string) {
      const event = { ...AGENDA_EVENT, endsAt: null, opensAt: null, closesAt: null, capacity: 2, ...times }
      const { event: { id } } = (await head.inject('POST', '/agenda', event)).json()
      if (moved) await head.inject('PUT', `/events/${id}`, { data: moved })
      const { events: [copy] } = (await head.inject('POST', `/agenda/${id}/copies`, { dates: [date] })).json()
      return [copy.opensAt, copy.drawAt]
    }

    // 02:15 does not exist on 31 March 2030.
    const spring = { date: '2030-03-24T02:10:00.000Z', drawAt: '2030-03-24T01:20:00.000Z' }
    t.strictSame(await timesOfCopy(spring, '2030-03-31T01:05:00.000Z'), [null, '2030-03-31T01:05:00.000Z'])
    // 02:05 and 02:15 come twice on 27 October 2030, and PostgreSQL takes the second.
    const autumn = { date: '2030-10-20T00:30:00.000Z', drawAt: '2030-10-20T00:15:00.000Z' }
    t.strictSame(await timesOfCopy(autumn, '2030-10-27T00:30:00.000Z'), [null, '2030-10-27T00:30:00.000Z'])
    const opensAt = '2030-10-20T00:05:00.000Z'
    t.strictSame(await timesOfCopy({ ...autumn, opensAt }, '2030-10-27T00:30:00.000Z'), [
      '2030-10-27T01:05:00.000Z', null,
    ], 'registration opens later')
    const summer = { date: '2030-06-01T10:00:00.000Z', drawAt: '2030-06-01T09:00:00.000Z' }
    t.strictSame(await timesOfCopy(summer, '2030-06-08T08:00:00.000Z', '2030-06-01T08:00:00.000Z'), [
      null, '2030-06-08T08:00:00.000Z',
    ], 'the event has been moved before its draw')
  })

  t.test('GET /agenda/:id/draw tells a missing draw from a missing event', async t => {
    assertMessage(t, await inject(app, 'GET', `/agenda/${await addEvent()}/draw`), 404, 'There is no draw')
    assertMessage(t, await inject(app, 'GET', `/agenda/${club}/draw`), 404, 'Event not found')
  })
})

t.test('Until the draw, nobody has a seat, and afterwards everybody can compute who has one', async t => {
  const id = await withDraw()
  for (const who of people.slice(0, 8)) await register(who, id)
  t.strictSame(await seats(id), Array(8).fill('drawing'))
  t.match(await eventOf(id), { comingCount: 8, seatsLeft: null, waitingCount: 0, drawnAt: null })
  const own = (await ada.inject('GET', '/me/seats')).json().seats.find(({ event }: any) => event.id === id)
  t.match(own, { state: 'drawing', position: null, onlineUrl: null })
  const csv = (await head.inject('GET', `/exports/events/${id}/registrations.csv`)).body
  t.equal(csv.match(/,drawing,/g)?.length, 8)
  t.equal((await answer(bob, id, false)).json().seat.state, 'declined')
  t.equal((await answer(bob, id, true)).json().seat.state, 'drawing', 'who comes back takes part (concrexit #332)')
  await answer(cleo, id, false)

  await draw(id)
  const drawn = await drawOf(id)
  assertFair(t, drawn)
  t.equal(drawn.seats, 3)
  const listed = await list(id)
  t.strictSame(listed.map(({ registrationId }) => registrationId).slice(0, 7), drawn.order)
  const states = ['seated', 'seated', 'seated', 'waiting 1', 'waiting 2', 'waiting 3', 'waiting 4', 'declined']
  t.strictSame(listed.map(({ state, position }) => position ? `${state} ${position}` : state), states)
  t.match(await eventOf(id), { comingCount: 7, seatsLeft: 0, waitingCount: 4, drawnAt: drawn.drawnAt })

  // After the draw, new people stand behind its entrants (connpass yapcasia-8oji-2016mid #77).
  await register(people[8]!, id)
  await answer(cleo, id, true)
  t.strictSame((await list(id)).slice(7).map(({ userId, position }) => [userId, position]),
    [[people[8]!.id, 5], [cleo.id, 6]])
  t.strictSame((await drawOf(id)).order, drawn.order, 'they are not in the order')
  const first = people.find(({ id }) => id === listed[0]!.userId)!
  await answer(first, id, false)
  t.strictSame((await drawOf(id)).order, drawn.order.slice(1), 'nor is a person who does not come')
  t.equal((await list(id))[2]!.registrationId, drawn.order[3], 'the next has the seat')
})

t.test('People who were in line before a draw was set keep what they have', async t => {
  const id = await addEvent()
  await put(id, { capacity: 2 })
  for (const who of [ada, bob, cleo]) await register(who, id)
  await put(id, { drawAt: at(24) })
  for (const who of people.slice(3, 8)) await register(who, id)
  const drawing = Array(5).fill('drawing')
  t.strictSame(await seats(id), ['seated', 'seated', 'waiting 1', ...drawing])
  t.match(await eventOf(id), { waitingCount: 1, seatsLeft: null })
  t.equal((await drawOf(id)).seats, 0)
  await put(id, { capacity: 4 })
  t.strictSame(await seats(id), ['seated', 'seated', 'seated', ...drawing])
  t.match([await eventOf(id), await drawOf(id)], [{ waitingCount: 0 }, { seats: 1 }])
  await put(id, { capacity: 1 })
  t.strictSame(await seats(id), ['seated', 'seated', 'seated', ...drawing], 'in a smaller room too')
  t.match([await eventOf(id), await drawOf(id)], [{ waitingCount: 0 }, { seats: 0 }])
  await put(id, { capacity: 5 })
  await answer(ada, id, false)
  await answer(ada, id, true)
  t.strictSame(await seats(id), ['drawing', 'seated', 'seated', ...drawing], 'who comes back takes part')
  await draw(id)
  const drawn = await drawOf(id)
  assertFair(t, drawn)
  t.match([drawn.seats, drawn.order.length], [3, 6])
  const states = await seats(id)
  t.strictSame(states.slice(1, 3), ['seated', 'seated'])
  t.strictSame([...states].sort(), [...Array(5).fill('seated'), 'waiting 1', 'waiting 2', 'waiting 3'])

  await put(id, { capacity: 1 })
  t.strictSame(await seats(id), states, 'nor does a smaller room after the draw unseat anybody')
  t.equal((await drawOf(id)).seats, 3)
  await put(id, { capacity: 6 })
  t.equal((await seats(id)).filter(state => state === 'seated').length, 6)
  t.equal((await drawOf(id)).seats, 4)
})

t.test('A draw happens once, whoever is fastest, and is logged and told once', async t => {
  const other = await build(t, { ...MAIL, DATABASE_URL: app.database.url })
  const id = await withDraw()
  for (const who of people) await register(who, id)
  await sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${id}`
  const start = log.length
  await Promise.all(Array.from({ length: 6 }, (_, n) => {
    const { sql } = n % 2 ? other : app
    return drawDue({ sql, log: app.log, tell })
  }))
  const { order } = await drawOf(id)
  t.equal(order.length, 12)
  const seats = await list(id)
  const drawn = order.map((id: string) => seats.find(({ registrationId }) => registrationId === id)!.userId)
  const batches = await sql`SELECT to_jsonb(user_ids) AS users FROM email_batches WHERE event_id = ${id}`
  t.strictSame([...batches], [{ users: drawn }], 'the best lot first')
  const lines = log.slice(start).split('\n').filter(line => line.includes('seats-drawn')).map(line => JSON.parse(line))
  t.match(lines, [{ event: 'seats-drawn', target: id, participants: 12, msg: 'audit' }])
  t.equal(lines.length, 1)
  t.equal(await sql.begin(sql => drawSeats(sql, id, tell)), undefined)
  t.strictSame((await drawOf(id)).order, order)
})

t.test('The service draws by itself, also after all instances were down', async t => {
  const id = await withDraw()
  await register(ada, id)
  const { commitment } = await drawOf(id)
  await sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${id}`
  await build(t, { DATABASE_URL: app.database.url })
  let drawn
  do drawn = await drawOf(id); while (!drawn.drawnAt)
  t.match(drawn, { commitment, order: [String] })
  assertFair(t, drawn)
})

t.test('A draw that fails is tried again, and delays no other', async t => {
  const ids = [await withDraw(), await withDraw()]
  for (const id of ids) await register(ada, id)
  await sql`UPDATE event_details SET draw_at = now() + array_position(${`{${ids}}`}::uuid[], event_id) * interval '-1 s'
    WHERE event_id = ANY (${`{${ids}}`}::uuid[])`
  const failing: TellDraw = async (transaction, id, users) => {
    if (id === ids[1]) throw new Error('No emails today')
    await tell(transaction, id, users)
  }
  const start = log.length
  await drawDue({ sql, log: app.log, tell: failing })
  t.match(log.slice(start), new RegExp(`"level":50.*No emails today.*"target":"${ids[1]}"`))
  t.match([await drawOf(ids[0]!), await drawOf(ids[1]!)], [{ drawnAt: String }, { drawnAt: null, order: null }])
  await drawDue({ sql, log: app.log, tell })
  t.match(await drawOf(ids[1]!), { drawnAt: String })
})

t.test('Failures one after the other are logged once', async t => {
  const stop = new AbortController()
  const outcomes = [false, false, true, false, true]
  const failing: any = async () => {
    const isUp = outcomes.shift()
    if (outcomes.length === 0) stop.abort()
    if (!isUp) throw new Error('away')
    return []
  }
  const start = log.length
  await runDraws({ sql: failing, log: app.log, tell }, stop.signal, 1)
  t.equal(log.slice(start).split('"away"').length - 1, 2)
})

t.test('The first failure of each draw is logged, and a stop waits for one draw only', async t => {
  const stop = new AbortController()
  const due = [['one'], ['one', 'two'], ['one', 'two', 'three']]
  let begun = 0
  const failing: any = async () => due.shift()!.map(id => ({ id }))
  failing.begin = async () => {
    begun++
    if (due.length === 0) stop.abort()
    throw new Error('No emails today')
  }
  const failures: unknown[] = []
  const logger = { info () {}, error (failure: unknown) { failures.push(failure) } }
  await runDraws({ sql: failing, log: logger, tell }, stop.signal, 1)
  const err = new Error('No emails today')
  t.strictSame(failures, [{ err, target: 'one' }, { err, target: 'two' }])
  t.equal(begun, 4)
})

t.test('A registration beside the draw, or beside its setting, is before it or after it', async t => {
  /** Registers while the event is locked, and makes a change before it is unlocked. */
  async function during (id: string, who: Person, change: () => Promise<unknown>) {
    let registering!: ReturnType<typeof register>
    let changing!: Promise<unknown>
    await sql.begin(async transaction => {
      await transaction`SELECT FROM events WHERE id = ${id} FOR UPDATE`
      changing = change()
      await untilBlocked(sql)
      registering = register(who, id)
      await untilBlocked(sql, 2)
    })
    t.equal((await registering).statusCode, 201)
    await changing
  }

  t.test('as it is set', async t => {
    const id = await addEvent()
    await put(id, { capacity: 1 })
    await register(ada, id)
    await during(id, bob, () => put(id, { drawAt: at(24) }))
    t.strictSame(await seats(id), ['seated', 'drawing'])
  })

  t.test('as it is drawn', async t => {
    const id = await withDraw(1)
    await register(ada, id)
    await during(id, bob, () => draw(id))
    t.strictSame(await seats(id), ['seated', 'waiting 1'])
    t.equal((await drawOf(id)).order.length, 1)
  })

  t.test('as it is drawn, with a limit that is removed', async t => {
    const id = await withDraw(1)
    await register(ada, id)
    await during(id, bob, async () => {
      await draw(id)
      await put(id, { capacity: null })
    })
    await put(id, { capacity: 1 })
    t.equal((await drawOf(id)).order.length, 1)
    t.strictSame((await list(id)).map(({ userId }) => userId), [ada.id, bob.id])
  })
})

t.test('A clock that was set back moves nobody in the line', async t => {
  const id = await withDraw(2)
  for (const who of [ada, bob, cleo]) await register(who, id)
  await sql`UPDATE event_details SET draw_from = now() + interval '1 hour' WHERE event_id = ${id}`
  await sql`
    INSERT INTO event_answers (registration_id, event_id, since)
    SELECT id, event_id, now() + interval '1 hour' FROM event_registrations WHERE event_id = ${id}
  `
  await register(dan, id)
  t.strictSame(await seats(id), Array(4).fill('drawing'))
  await draw(id)
  assertFair(t, await drawOf(id))
  t.equal((await drawOf(id)).order.length, 4)
  await register(people[4]!, id)
  t.equal((await list(id)).at(-1)!.userId, people[4]!.id)
  t.equal((await drawOf(id)).order.length, 4)
})

t.test('While a draw waits, people who register do not wait for each other', async t => {
  const id = await withDraw()
  await sql.begin(async transaction => {
    await transaction`INSERT INTO event_registrations (user_id, event_id) VALUES (${ada.id}, ${id})`
    t.equal((await register(bob, id)).statusCode, 201)
  })
  t.strictSame(await seats(id), ['drawing', 'drawing'])
})

t.test('Organizers see since when somebody has answered, also after the draw (concrexit #3995)', async t => {
  const id = await withDraw(1)
  for (const who of [ada, bob, cleo]) await register(who, id)
  await answer(bob, id, false)
  await answer(cleo, id, false)
  await answer(cleo, id, true)
  const times = async () => new Map((await list(id)).map(({ userId, answeredAt }) => [userId, answeredAt]))
  const before = await times()
  const [registered] = await sql`
    SELECT registered_at AS time FROM event_registrations WHERE user_id = ${ada.id} AND event_id = ${id}
  `
  t.equal(before.get(ada.id), registered!.time.toISOString())
  t.ok(before.get(ada.id)! < before.get(bob.id)! && before.get(bob.id)! < before.get(cleo.id)!)
  await draw(id)
  t.strictSame(await times(), before)
  const { registrations } = (await cleo.inject('GET', '/me/export')).json()
  t.match(registrations.find(({ event }: any) => event.id === id), { coming: true, answeredAt: before.get(cleo.id) })
})

t.test('Before the draw, nothing contains the seed', async t => {
  const id = await withDraw()
  await register(ada, id)
  const [{ seed }] = await sql<[{ seed: string }]>`SELECT draw_seed AS seed FROM event_details WHERE event_id = ${id}`
  t.match(seed, /^[0-9a-f]{64}$/)
  const responses = await Promise.all([
    ...['', '/draw', '/seats'].map(path => head.inject('GET', `/agenda/${id}${path}`)),
    put(id, { drawAt: at(30) }),
    head.inject('POST', `/agenda/${id}/copies`, { dates: [at(100)] }),
    ...['/agenda', '/me/seats', '/me/export', '/metrics', '/events', `/exports/events/${id}/registrations.csv`]
      .map(path => head.inject('GET', path)),
    ada.inject('GET', '/me/seats'),
  ])
  t.notOk(responses.some(({ body }) => body.includes(seed)))
  t.notOk(log.includes(seed))
  await t.rejects(sql`UPDATE event_details SET capacity = NULL WHERE event_id = ${id}`, /event_details_draw_seats/)
  await draw(id)
  t.equal((await drawOf(id)).seed, seed)
})
