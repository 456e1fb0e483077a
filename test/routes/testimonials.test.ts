import { assertInvalid, assertResponse, DATE_TIME, shown } from '../assertions.ts'
import { build, inject, insert, person } from '../helper.ts'
import t from '../suite.ts'

const app = await build(t)
const admin = await person(app, 'ADMIN')

const BODY = { name: 'Ada', content: 'It was fun.', batchYear: 2020 }

const add = (fields: Record<string, unknown> = {}) =>
  insert(app, 'testimonials', { created_at: new Date('2026-01-31T09:30:00.123Z'), ...fields })

async function stored (id: string) {
  const [testimonial] = await app.sql`SELECT * FROM testimonials WHERE id = ${id}`
  return testimonial
}

t.test('GET /testimonials returns every field to anyone, newest first', async t => {
  await app.sql`TRUNCATE testimonials`
  assertResponse(t, await inject(app, 'GET', '/testimonials'), 200, { items: [], page: 1, limit: 12, total: 0 })
  const older = await add({ name: 'Bob', image_url: '', created_at: new Date('2026-01-31T09:30:00Z') })
  const newer = await add({ image_url: 'https://example.org/ada.png', batch_year: 1900 })
  const oldest = await add({ created_at: new Date('1999-12-31T23:59:59.999Z') })
  const body = {
    items: [
      {
        id: newer,
        name: 'Ada',
        imageUrl: 'https://example.org/ada.png',
        batchYear: 1900,
        content: 'It was fun.',
        createdAt: '2026-01-31T09:30:00.123Z',
      },
      {
        id: older,
        name: 'Bob',
        imageUrl: '',
        batchYear: 2020,
        content: 'It was fun.',
        createdAt: '2026-01-31T09:30:00.000Z',
      },
      {
        id: oldest,
        name: 'Ada',
        imageUrl: null,
        batchYear: 2020,
        content: 'It was fun.',
        createdAt: '1999-12-31T23:59:59.999Z',
      },
    ],
    page: 1,
    limit: 12,
    total: 3,
  }
  for (const url of ['/testimonials', '/testimonials/']) {
    assertResponse(t, await inject(app, 'GET', url), 200, body, url)
  }
})

t.test('GET /testimonials pages through the list', async t => {
  await app.sql`TRUNCATE testimonials`
  const TOTAL = 105
  await app.sql`
    INSERT INTO testimonials (id, name, content, batch_year, created_at)
    SELECT gen_random_uuid(), 'Ada', 'It was fun.', 2020, timestamptz '2026-01-31 09:30Z' + n / 4 * interval '1 minute'
    FROM generate_series(1, ${TOTAL}::int) n
  `
  const rows = await app.sql<{ id: string, at: Date }[]>`SELECT id, created_at AS at FROM testimonials`
  const ids = [...rows].sort((a, b) => +b.at - +a.at || (a.id < b.id ? -1 : 1)).map(({ id }) => id)

  // The query, and the effective page and limit.
  const queries: [query: string, page: number, limit: number][] = [
    ['', 1, 12],
    ['?page=&limit=', 1, 12],
    ['?page&limit', 1, 12],
    ['?page=&limit=5', 1, 5],
    ['?page=3&limit=', 3, 12],
    ['?page=9', 9, 12],
    ['?page=10', 10, 12],
    ['?page=3&limit=7', 3, 7],
    ['?page=0', 1, 12],
    ['?page=-1', 1, 12],
    ['?page=0&limit=0', 1, 1],
    ['?limit=0', 1, 1],
    ['?limit=-3', 1, 1],
    ['?limit=100', 1, 100],
    ['?limit=101', 1, 100],
    ['?limit=99999999999999999999', 1, 100],
    ['?page=2&limit=101', 2, 100],
    ['?page=12abc', 12, 12],
    ['?limit=12abc', 1, 12],
    ['?page=1e3', 1, 12],
    ['?limit=1e3', 1, 1],
    ['?page=2.9&limit=2.9', 2, 2],
    ['?page=%205', 5, 12],
    ['?page=+5', 5, 12],
    ['?page=%2B5', 5, 12],
    ['?page=007', 7, 12],
    ['?page=0x10', 1, 12],
    ['?limit=0x10', 1, 1],
    ['?page=1000000&limit=100', 1_000_000, 100],
    ['?page=9007199254740991', 9007199254740991, 12],
    ['?Page=2&LIMIT=2&page[]=3&sort=asc', 1, 12],
  ]
  for (const [query, page, limit] of queries) {
    const response = await inject(app, 'GET', `/testimonials${query}`)
    const { items, ...rest } = response.json()
    t.strictSame([response.statusCode, rest], [200, { page, limit, total: TOTAL }], query)
    const expected = ids.slice((page - 1) * limit, page * limit)
    t.strictSame(items?.map(({ id }: { id: string }) => id), expected, query)
  }
})

t.test('GET /testimonials returns 500 for a page or limit that is not a number, or too large', async t => {
  for (const value of [
    'abc', 'NaN', 'Infinity', 'null', 'undefined', 'e5', '-', '-abc', '.5', '%20', '%D9%A3', '%5B%5D',
  ]) {
    for (const query of [`page=${value}`, `limit=${value}`, `page=2&limit=${value}`, `page=${value}&limit=${value}`]) {
      const response = await inject(app, 'GET', `/testimonials?${query}`)
      assertResponse(t, response, 500, { message: 'Failed to fetch testimonials' }, query)
    }
  }
  for (const page of ['9223372036854775808', `1${'0'.repeat(30)}`, '9'.repeat(400)]) {
    const response = await inject(app, 'GET', `/testimonials?page=${page}`)
    assertResponse(t, response, 500, { message: 'Failed to fetch testimonials' }, page.slice(0, 40))
  }
})

t.test('GET /testimonials rejects a repeated parameter', async t => {
  for (const [query, ...paths] of [
    ['page=1&page=2', 'page'],
    ['page=&page=', 'page'],
    ['limit=1&limit=1', 'limit'],
    ['page=abc&limit=1&limit=2', 'limit'],
    ['page=1&limit=1&page=2&limit=2', 'limit', 'page'],
  ] as const) {
    assertInvalid(t, await inject(app, 'GET', `/testimonials?${query}`), paths, query)
  }
})

t.test('POST /testimonials creates a testimonial', async t => {
  const body = { ...BODY, imageUrl: 'https://example.org/ada.png' }
  const response = await admin.inject('POST', '/testimonials', { ...body, id: 'mine', createdAt: '2000-01-01' })
  const { id, createdAt } = response.json().testimonial
  t.type(id, 'string')
  t.match(createdAt, DATE_TIME)
  assertResponse(t, response, 201, { testimonial: { id, createdAt, ...body } })
  const again = await admin.inject('POST', '/testimonials/', body)
  t.equal(again.statusCode, 201, 'a duplicate, with a trailing slash')
  t.not(again.json().testimonial.id, id)
  const { items } = (await inject(app, 'GET', '/testimonials?limit=100')).json()
  t.strictSame(items.find((item: { id: string }) => item.id === id), response.json().testimonial)
})

t.test('POST /testimonials stores an empty imageUrl as it is, and an omitted one as null', async t => {
  for (const [imageUrl, expected] of [['', ''], [undefined, null]]) {
    const response = await admin.inject('POST', '/testimonials', { ...BODY, imageUrl })
    const { testimonial } = response.json()
    t.strictSame([response.statusCode, testimonial.imageUrl], [201, expected])
    t.equal((await stored(testimonial.id))?.image_url, expected)
  }
})

t.test('PUT /testimonials/:id changes only the given fields', async t => {
  const [id, other] = [await add(), await add({ name: 'Other' })]
  let testimonial = { id, ...BODY, imageUrl: null as string | null, createdAt: '2026-01-31T09:30:00.123Z' }
  assertResponse(t, await admin.inject('PUT', `/testimonials/${id}`, {}), 200, { testimonial }, 'an empty object')
  for (const change of [
    { name: 'Bob' },
    { content: 'It was long.' },
    { batchYear: 3000 },
    { imageUrl: 'https://example.org/bob.png' },
    { imageUrl: '' },
    { name: 'Eve', content: 'It was.', batchYear: 1900, imageUrl: 'data:,eve' },
  ]) {
    testimonial = { ...testimonial, ...change }
    assertResponse(t, await admin.inject('PUT', `/testimonials/${id}`, change), 200, { testimonial }, shown(change))
    assertResponse(t, await admin.inject('PUT', `/testimonials/${id}/`, {}), 200, { testimonial },
      'it stays, and with a trailing slash')
  }
  t.match(await stored(other), { name: 'Other', content: 'It was fun.', batch_year: 2020, image_url: null })
})

t.test('DELETE /testimonials/:id deletes the testimonial, and returns no body', async t => {
  const [id, other] = [await add(), await add()]
  const response = await admin.inject('DELETE', `/testimonials/${id}`)
  t.strictSame([response.statusCode, response.body], [204, ''])
  t.equal(await stored(id), undefined)
  t.ok(await stored(other))
})
