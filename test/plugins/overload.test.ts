import { EventEmitter, once } from 'node:events'

import t, { type Test } from 'tap'

import { buildApp } from '#lib/app.js'
import { createDatabase, inject, person, testConfig } from '../helper.ts'

/** The service; any operation of it may answer with a 503 that no route declares. */
async function build (t: Test, MAX_REQUESTS: string) {
  const app = buildApp(testConfig({ DATABASE_URL: await createDatabase(t), MAX_REQUESTS }))
  t.teardown(() => app.close())
  await app.ready()
  return app
}

t.test('past MAX_REQUESTS at a time operations are refused at once, and probes are not', async t => {
  const app = await build(t, '3')
  const { token } = await person(app)
  const headers = { authorization: `Bearer ${token}` }
  const like = () => inject(app, 'POST', '/mentors/no-such-mentor/like', undefined, headers)

  // Nobody gets at the likes.
  const lock = new EventEmitter()
  const locked = app.sql.begin(async sql => {
    await sql`LOCK TABLE mentor_likes`
    lock.emit('taken')
    await once(lock, 'release')
  })
  await once(lock, 'taken')
  const waiting = Array.from({ length: 5 }, like)
  const refused = await Promise.race(waiting)
  t.strictSame(
    [refused.statusCode, refused.headers['retry-after'], refused.json()],
    [503, '2', { message: 'The service has too much to do at this moment, please try again in a few seconds' }]
  )
  t.equal((await inject(app, 'GET', '/events')).statusCode, 503)
  t.equal((await inject(app, 'GET', '/livez')).statusCode, 200)
  t.equal((await inject(app, 'GET', '/readyz')).statusCode, 200)
  t.equal((await inject(app, 'GET', '/auth/me')).statusCode, 401, 'nobody is counted who is not let in')

  lock.emit('release')
  await locked
  const statuses = (await Promise.all(waiting)).map(({ statusCode }) => statusCode)
  t.strictSame(statuses.sort(), [404, 404, 404, 503, 503])
  t.equal((await inject(app, 'GET', '/events')).statusCode, 200, 'and then all goes on')
})

t.test('an operation is counted until it is answered, whatever the answer', async t => {
  const app = await build(t, '1')
  const admin = await person(app, 'ADMIN')
  for (let time = 0; time < 3; time++) {
    t.equal((await admin.inject('PUT', '/blogs/no-such-blog', {})).statusCode, 500)
    t.equal((await admin.inject('PUT', '/blogs/no-such-blog', { title: 1 })).statusCode, 400)
    t.equal((await admin.inject('GET', '/clubs')).statusCode, 200)
  }
})
