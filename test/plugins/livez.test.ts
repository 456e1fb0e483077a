import t from 'tap'

import { build, inject } from '../helper.ts'

const app = await build(t)

t.test('GET /livez returns 200 while the process runs', async t => {
  const response = await inject(app, 'GET', '/livez')
  t.equal(response.statusCode, 200)
  t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  t.strictSame(response.json(), { message: 'Alive' })
})

t.test('GET /livez ignores credentials', async t => {
  t.equal((await inject(app, 'GET', '/livez', undefined, { authorization: 'Bearer garbage' })).statusCode, 200)
})

t.test('GET /livez returns 200 without the database', async t => {
  const app = await build(t)
  await app.sql.end({ timeout: 0 })
  t.equal((await inject(app, 'GET', '/livez')).statusCode, 200)
})
