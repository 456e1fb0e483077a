// Sends every operation that writes, while PostgreSQL rolls back one of its statements because of a conflict.
import { build, inject, MAIL } from '../helper.ts'
import { createWorld, OPERATIONS, pathWith, roleFor } from '../operations.ts'
import t from '../suite.ts'

const app = await build(t, MAIL)

/** Not tested: they never succeed, read an ID token, or do not write. */
const EXEMPT = ['DELETE /users/:userId/club', 'POST /auth/google', 'POST /auth/login', 'POST /me/token']

// A sequence counts also what is rolled back. The sender of emails updates them at any time.
await app.sql.unsafe(`
  CREATE SEQUENCE conflict_writes;
  CREATE TABLE conflict_at (n bigint);
  INSERT INTO conflict_at VALUES (0);
  CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF nextval('conflict_writes') = (SELECT n FROM conflict_at) THEN
      RAISE EXCEPTION 'conflict' USING ERRCODE = '40P01';
    END IF;
    RETURN NULL;
  END $$;
  DO $$
  DECLARE name text;
  BEGIN
    FOR name IN
      SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name <> 'conflict_at'
    LOOP
      EXECUTE format(
        'CREATE TRIGGER conflict BEFORE INSERT OR DELETE %s ON %I FOR EACH STATEMENT EXECUTE FUNCTION conflict()',
        CASE WHEN name <> 'emails' THEN 'OR UPDATE' ELSE '' END, name
      );
    END LOOP;
  END $$;
`)

for (const [name, operation] of Object.entries(OPERATIONS)) {
  if (name.startsWith('GET ') || EXEMPT.includes(name)) continue
  t.test(`${name} succeeds after a deadlock of any of its statements`, async t => {
    const [method, path] = name.split(' ') as ['POST' | 'PUT' | 'DELETE', string]
    const role = roleFor(operation)
    let conflicts = 0
    for (let writes = Infinity; writes > conflicts; conflicts++) {
      await app.sql`DELETE FROM rate_limits`
      const world = await createWorld(app)
      // These operations add the same person or club in every iteration.
      if (name === 'POST /auth/register') await app.sql`DELETE FROM users WHERE email = 'new@example.org'`
      if (name === 'POST /clubs') await app.sql`UPDATE clubs SET name = id::text`
      const { id = '', body: more } = await operation.given?.(world) ?? {}
      const { body, type } = operation
      await app.sql`UPDATE conflict_at SET n = ${conflicts + 1}`
      await app.sql`SELECT setval('conflict_writes', 1, false)`
      const response = await inject(app, method, pathWith(path, id), type ? body : { ...body, ...more }, {
        ...type && { 'content-type': type }, ...role && { authorization: `Bearer ${world.people[role].token}` },
      })
      await app.sql`UPDATE conflict_at SET n = 0`
      t.ok(response.statusCode < 300, `statement ${conflicts + 1}: ${response.statusCode}`)
      const [counted] = await app.sql<{ writes: string }[]>`SELECT last_value AS writes FROM conflict_writes`
      writes = Number(counted!.writes)
    }
    t.ok(conflicts > 1, 'it writes')
  })
}
