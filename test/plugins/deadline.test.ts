import { request } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

import postgres from 'postgres'
import t, { type Test } from 'tap'

import { makeProxy } from '../cluster.ts'
import { build, createDatabase, person } from '../helper.ts'

/** The service, on a database whose answers can be held back. */
async function open (t: Test) {
  const address = new URL(await createDatabase(t))
  const proxy = await makeProxy(t, Number(address.port || 5432), address.hostname)
  const DATABASE_URL = Object.assign(new URL(address), { host: `127.0.0.1:${proxy.port}` }).href
  const app = await build(t, { DATABASE_URL, DATABASE_TIMEOUT: '1', LOG_LEVEL: 'warn' })
  const sql = postgres(address.href, { max: 1 })
  t.teardown(() => sql.end())
  return { app, proxy, sql }
}

t.test('an operation has one deadline, however many statements it has', async t => {
  const { app, sql } = await open(t)
  const ada = await person(app)
  const [mentor] = await sql<{ id: string }[]>`
    WITH club AS (INSERT INTO clubs (name, description) VALUES ('Chess', '') RETURNING id)
    INSERT INTO mentors (name, expertise, image_url, club_id) SELECT 'Bob', 'Openings', '', id FROM club RETURNING id
  `
  // Each of the two statements takes less time than it may.
  await sql.unsafe(`
    CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.7); RETURN NULL; END';
    CREATE TRIGGER dawdle AFTER INSERT ON mentor_likes EXECUTE FUNCTION dawdle();
    ALTER TABLE mentor_like_counts RENAME TO counted;
    CREATE VIEW mentor_like_counts AS SELECT counted.* FROM counted, pg_sleep(0.7);
  `)
  const start = performance.now()
  const { statusCode, body } = await ada.inject('POST', `/mentors/${mentor!.id}/like`)
  t.strictSame([statusCode, JSON.parse(body)], [500, { message: 'Error toggling mentor like' }])
  t.ok(performance.now() - start < 1300)
})

t.test('so has one that waited, before it was routed, for what others asked', async t => {
  const { app, proxy } = await open(t)
  await app.listen({ port: 0 })
  const { port } = app.server.address() as AddressInfo
  const get = async () => {
    const start = performance.now()
    const [response] = await once(request({ port, path: '/clubs' }).end(), 'response')
    response.resume()
    return { status: response.statusCode, seconds: (performance.now() - start) / 1000 }
  }
  t.equal((await get()).status, 200)
  const { arrived, release } = proxy.hold()
  const early = get()
  await arrived
  const late = await get()
  t.equal(late.status, 500)
  t.ok(late.seconds < 1.3, `${late.seconds} s`)
  t.equal((await early).status, 500)
  release()
})
