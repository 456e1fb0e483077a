// GET /auth/me on node:http, node:crypto and postgres.js only: verifies the token, runs the statement of the service,
// and sends the row with the service's headers. HEADERS is JSON, names and values in turn.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

import postgres from 'postgres'

const { DATABASE_URL, JWT_SECRET, HEADERS, PORT } = process.env
const headers = JSON.parse(HEADERS!) as string[]
const sql = postgres(DATABASE_URL!, { max: 10, fetch_types: false })

createServer(async (request, response) => {
  const id = verify(request.headers.authorization ?? '')
  if (!id) return response.writeHead(401).end()
  const [row] = await sql<{ body: string }[]>`
    SELECT row_to_json(response)::text AS body
    FROM (
      SELECT profile AS user
      FROM (
        SELECT
          users.id, first_name AS "firstName", last_name AS "lastName", email, avatar, role,
          CASE WHEN clubs.id IS NOT NULL
            THEN json_build_object('id', clubs.id, 'name', clubs.name, 'imageUrl', clubs.image_url)
          END AS club
        FROM users LEFT JOIN clubs ON clubs.id = users.club_id
        WHERE users.id = ${id}
      ) AS profile
    ) AS response
  `
  const { body } = row!
  response.writeHead(200, [...headers, 'content-length', String(Buffer.byteLength(body))]).end(body)
}).listen(Number(PORT), '127.0.0.1')

/** The subject of a valid token, which is HS256 like all tokens of the service. */
function verify (authorization: string) {
  const [header, payload, signature] = authorization.replace(/^Bearer /, '').split('.')
  const expected = createHmac('sha256', JWT_SECRET!).update(`${header}.${payload}`).digest()
  const given = Buffer.from(signature ?? '', 'base64url')
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return
  const { sub, exp } = JSON.parse(Buffer.from(payload!, 'base64url').toString())
  return exp > Date.now() / 1000 ? sub as string : undefined
}
