import t from 'tap'

import { assertMessage, assertResponse, DATE_TIME } from '../../assertions.ts'
import { build, inject, person } from '../../helper.ts'
import {
  app, clubOf, ghost, ids, makeClub, makeEvent, makeHead, makeIds, makeRegistration, type Registration,
} from './fixtures.ts'

t.test('GET /events', async t => {
  t.test('is public and cacheable', async t => {
    const app = await build(t)
    const empty = { events: [], pagination: { page: 1, pages: 0, total: 0, limit: 12 } }
    assertResponse(t, await inject(app, 'GET', '/events'), 200, empty)

    const club = await makeClub({}, app)
    const plain = await makeClub({ image_url: null }, app)
    const busy = await makeEvent(club.id, { date: '2030-01-02T00:00:00Z' }, app)
    const quiet = await makeEvent(plain.id, { date: '2001-01-01T00:00:00Z', image_url: null }, app)
    for (let i = 0; i < 3; i++) await makeRegistration((await person(app)).id, busy.id, {}, app)
    const expected = {
      events: [
        { ...busy, club: clubOf(club), registrationCount: 3 },
        { ...quiet, club: { name: plain.name, imageUrl: null }, registrationCount: 0 },
      ],
      pagination: { page: 1, pages: 1, total: 2, limit: 12 },
    }
    for (const headers of [undefined, { authorization: 'Bearer not.a.token' }]) {
      const response = await inject(app, 'GET', '/events', undefined, headers)
      assertResponse(t, response, 200, expected)
      t.equal(response.headers['cache-control'], 'public, s-maxage=60, stale-while-revalidate=120')
    }
    assertResponse(t, await inject(app, 'GET', '/events/'), 200, expected)
    assertResponse(t, await inject(app, 'GET', '/events?upcoming=true&clubId=x&page[]=7'), 200, expected)
    t.match(busy.createdAt, DATE_TIME)
  })

  t.test('page, limit and sort', async t => {
    const app = await build(t)
    const club = await makeClub({}, app)
    const { ordered, shuffled } = makeIds()
    // Four events on each of five days.
    const day = (id: string) => Math.floor(ordered.indexOf(id) / 2) % 5
    for (const id of shuffled) await makeEvent(club.id, { id, date: `2030-01-0${day(id) + 1}T09:00:00Z` }, app)
    const asc = [...ordered].sort((a, b) => day(a) - day(b) || (a < b ? -1 : 1))
    const desc = [...ordered].sort((a, b) => day(b) - day(a) || (a < b ? -1 : 1))
    const list = (query: string) => inject(app, 'GET', `/events?${query}`)

    for (const [query, all] of [['', desc], ['&sort=desc', desc], ['&sort=asc', asc]] as const) {
      t.test(`${query || 'no sort'}: by date, then by id, and pages do not overlap`, async t => {
        t.strictSame(ids((await list(`limit=50${query}`)).json().events), all)
        const paged = []
        for (let page = 1; page <= 7; page++) {
          const { events, pagination } = (await list(`page=${page}&limit=3${query}`)).json()
          t.strictSame(pagination, { page, pages: 7, total: 20, limit: 3 })
          paged.push(...ids(events))
        }
        t.strictSame(paged, all)
      })
    }

    const huge = '9'.repeat(400)
    const almost = 2 ** 63 - 1024
    const cases: [query: string, page: number, limit: number][] = [
      ['', 1, 12],
      ['page=&limit=', 1, 12],
      ['page&limit', 1, 12],
      ['page=0&limit=0', 1, 12],
      ['page=-0&limit=-0', 1, 12],
      ['page=abc&limit=abc', 1, 12],
      ['page=NaN&limit=Infinity', 1, 12],
      ['page=0x&limit=0b11', 1, 12],
      ['page=2', 2, 12],
      ['limit=1', 1, 1],
      ['page=2&limit=5', 2, 5],
      ['page=2abc&limit=12abc', 2, 12],
      ['page=1.9&limit=3.9', 1, 3],
      ['page=2e3&limit=4e3', 2, 4],
      ['page=0x2&limit=0x10', 2, 16],
      ['page=0X1&limit=0xA', 1, 10],
      ['page=02&limit=010', 2, 10],
      ['page=%202&limit=%2B3', 2, 3],
      ['page=3&limit=10', 3, 10],
      ['page=20&limit=1', 20, 1],
      ['page=21&limit=1', 21, 1],
      ['limit=20', 1, 20],
      ['limit=100000', 1, 100_000],
      ['limit=9007199254740991', 1, Number.MAX_SAFE_INTEGER],
      ['page=9007199254740991&limit=1', Number.MAX_SAFE_INTEGER, 1],
      ['page=1000000000000000', 1e15, 12],
      [`limit=${almost}`, 1, almost],
      ['limit=9223372036854774784', 1, almost],
      ['page=2&limit=9223372036854774784', 2, almost],
      ['page=9223372036854774784&limit=1', almost, 1],
    ]
    for (const [query, page, limit] of cases) {
      const response = await list(query)
      const { events, pagination } = response.json()
      t.equal(response.statusCode, 200, query)
      t.strictSame(pagination, { page, pages: Math.ceil(20 / limit), total: 20, limit }, query)
      t.strictSame(ids(events), desc.slice((page - 1) * limit, page * limit), query)
    }

    const failing = [
      'limit=-1', 'limit=-12abc', 'limit=-0x10', 'page=-1', 'page=-1&limit=-1', 'page=-5abc', 'page=2&limit=-5',
      'limit=9223372036854775807', 'limit=9223372036854775808', `limit=${huge}`, `limit=-${huge}`,
      'limit=10000000000000000000000', 'page=9223372036854775807', 'page=10000000000000000000000&limit=1',
      'page=4294967297&limit=4294967296', `page=${huge}`, `page=-${huge}`, `page=${huge}&limit=${huge}`,
      'page=3&limit=9223372036854774784', 'page=-9223372036854774784',
    ]
    for (const query of failing) assertMessage(t, await list(query), 500, 'Error fetching events', query)

    const invalid: [query: string, ...paths: string[]][] = [
      ['sort=', 'sort'], ['sort', 'sort'], ['sort=up', 'sort'], ['sort=DESC', 'sort'], ['sort=asc%20', 'sort'],
      ['sort=asc&sort=desc', 'sort'], ['sort=asc&sort=asc', 'sort'], ['page=1&page=1', 'page'],
      ['limit=1&limit=2', 'limit'], ['page=1&page=2&limit=1&limit=2', 'page', 'limit'],
    ]
    for (const [query, ...paths] of invalid) {
      const response = await list(query)
      t.strictSame([response.statusCode, response.json().message], [400, 'Validation error'], query)
      const found = new Set(response.json().errors.map(({ path }: { path: string }) => path))
      t.strictSame([...found].sort(), paths.sort(), query)
    }
  })
})

t.test('GET /events/mine', async t => {
  t.test('returns the events of the current club of the user, with the ids of their registrations', async t => {
    const club = await makeClub()
    const other = await makeClub({ image_url: null })
    const elsewhere = await makeEvent(other.id)
    const early = await makeEvent(club.id, { date: '2029-01-01T00:00:00Z', image_url: null })
    const late = await makeEvent(club.id, { date: '2031-01-01T00:00:00Z' })
    const registrations = [
      await makeRegistration((await person(app)).id, late.id), await makeRegistration((await person(app)).id, late.id),
    ]
    await makeRegistration((await person(app)).id, elsewhere.id)
    for (const role of ['CLUB_HEAD', 'ADMIN'] as const) {
      const someone = await person(app, role, { club_id: club.id })
      for (const url of ['/events/mine', '/events/mine/']) {
        const response = await someone.inject('GET', url)
        const body = response.json()
        body.events[0].registrations.sort((a: Registration, b: Registration) => a.id < b.id ? -1 : 1)
        t.strictSame([response.statusCode, body], [200, {
          events: [
            { ...late, club: clubOf(club), registrations: ids(registrations).sort().map(id => ({ id })) },
            { ...early, club: clubOf(club), registrations: [] },
          ],
        }], role)
      }
      await app.sql`UPDATE users SET club_id = ${other.id} WHERE id = ${someone.id}`
      t.strictSame(ids((await someone.inject('GET', '/events/mine')).json().events), [elsewhere.id], role)
    }
  })

  t.test('is empty for a club without events', async t => {
    const head = await makeHead(await makeClub())
    assertResponse(t, await head.inject('GET', '/events/mine'), 200, { events: [] })
  })

  t.test('is sorted by date descending, then by id, and has no pages', async t => {
    const club = await makeClub()
    const head = await makeHead(club)
    const { ordered, shuffled } = makeIds()
    const day = (id: string) => ordered.indexOf(id) % 3
    for (const id of shuffled) await makeEvent(club.id, { id, date: `2030-01-0${day(id) + 1}T00:00:00Z` })
    const expected = [...ordered].sort((a, b) => day(b) - day(a) || (a < b ? -1 : 1))
    t.strictSame(ids((await head.inject('GET', '/events/mine?page=2&limit=2&sort=asc')).json().events), expected)
  })

  t.test('rejects users without a club', async t => {
    for (const role of ['CLUB_HEAD', 'ADMIN'] as const) {
      for (const someone of [await person(app, role), await ghost(role)]) {
        assertMessage(t, await someone.inject('GET', '/events/mine'), 400, 'You are not associated with any club', role)
      }
    }
  })
})
