// The compared operations as a typical Fastify application with pg and plain queries. Listens on PORT, uses the
// database at DATABASE_URL, and accepts tokens signed with JWT_SECRET.
import jwt from '@fastify/jwt'
import Fastify from 'fastify'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const app = Fastify()

await app.register(jwt, { secret: process.env.JWT_SECRET, verify: { algorithms: ['HS256'] } })

const BLOGS = `
  SELECT
    b.id, b.title, b.content, b.image_url AS "imageUrl", b.status, b.author_id AS "authorId",
    b.created_at AS "createdAt", b.updated_at AS "updatedAt",
    json_build_object('firstName', u.first_name, 'lastName', u.last_name, 'avatar', u.avatar) AS author
  FROM blogs b JOIN users u ON u.id = b.author_id
`

app.get('/blogs', async (_request, reply) => {
  const { rows } = await pool.query(`${BLOGS} WHERE b.status = 'PUBLISHED' ORDER BY b.created_at DESC, b.id`)
  reply.header('cache-control', 'public, s-maxage=120, stale-while-revalidate=300')
  return { blogs: rows }
})

app.get('/blogs/:id', async (request, reply) => {
  const { rows: [blog] } = await pool.query(`${BLOGS} WHERE b.id = $1`, [request.params.id])
  if (!blog) return reply.code(404).send({ message: 'Blog not found' })
  if (blog.status !== 'PUBLISHED') {
    return reply.code(403).send({ message: 'You are not allowed to view this blog' })
  }
  return { blog }
})

app.get('/mentors', async (_request, reply) => {
  const { rows } = await pool.query(`
    SELECT
      m.id, m.name, m.expertise, m.image_url AS "imageUrl", m.network_url AS "networkUrl", m.club_id AS "clubId",
      json_build_object('name', c.name, 'imageUrl', c.image_url) AS club,
      (SELECT count(*)::int FROM mentor_likes l WHERE l.mentor_id = m.id) AS "likeCount"
    FROM mentors m JOIN clubs c ON c.id = m.club_id
    ORDER BY m.name, m.id
  `)
  reply.header('cache-control', 'public, s-maxage=300, stale-while-revalidate=600')
  return { mentors: rows }
})

app.get('/clubs', async () => {
  const [clubs, members, events] = await Promise.all([
    pool.query(`
      SELECT id, name, description, image_url AS "imageUrl", club_head_id AS "clubHeadId" FROM clubs ORDER BY id
    `),
    pool.query(`
      SELECT club_id, id, first_name AS "firstName", last_name AS "lastName", email, role FROM users
      WHERE club_id IS NOT NULL ORDER BY id
    `),
    pool.query('SELECT club_id, id, title, date FROM events ORDER BY date DESC, id'),
  ])
  const byId = new Map(clubs.rows.map(club => [club.id, { ...club, members: [], events: [] }]))
  for (const { club_id: clubId, ...member } of members.rows) byId.get(clubId)?.members.push(member)
  for (const { club_id: clubId, ...event } of events.rows) byId.get(clubId)?.events.push(event)
  return { clubs: [...byId.values()] }
})

app.get('/events', async (request, reply) => {
  const page = parseInt(request.query.page) || 1
  const limit = parseInt(request.query.limit) || 12
  const sort = request.query.sort === 'asc' ? 'ASC' : 'DESC'
  const [{ rows: events }, { rows: [{ total }] }] = await Promise.all([
    pool.query(`
      SELECT
        e.id, e.title, e.description, e.image_url AS "imageUrl", e.date, e.club_id AS "clubId",
        e.created_at AS "createdAt", json_build_object('name', c.name, 'imageUrl', c.image_url) AS club,
        (SELECT count(*)::int FROM event_registrations r WHERE r.event_id = e.id) AS "registrationCount"
      FROM events e JOIN clubs c ON c.id = e.club_id
      ORDER BY e.date ${sort}, e.id LIMIT $1 OFFSET $2
    `, [limit, (page - 1) * limit]),
    pool.query('SELECT count(*)::int AS total FROM events'),
  ])
  reply.header('cache-control', 'public, s-maxage=60, stale-while-revalidate=120')
  return { events, pagination: { page, pages: Math.ceil(total / limit), total, limit } }
})

app.get('/testimonials', async request => {
  const page = Math.max(1, parseInt(request.query.page || '1', 10))
  const limit = Math.min(100, Math.max(1, parseInt(request.query.limit || '12', 10)))
  const [{ rows: items }, { rows: [{ total }] }] = await Promise.all([
    pool.query(`
      SELECT id, name, image_url AS "imageUrl", batch_year AS "batchYear", content, created_at AS "createdAt"
      FROM testimonials ORDER BY created_at DESC, id LIMIT $1 OFFSET $2
    `, [limit, (page - 1) * limit]),
    pool.query('SELECT count(*)::int AS total FROM testimonials'),
  ])
  return { items, page, limit, total }
})

app.get('/auth/me', { onRequest: authenticate }, async (request, reply) => {
  const { rows: [user] } = await pool.query(`
    SELECT
      u.id, u.first_name AS "firstName", u.last_name AS "lastName", u.email, u.avatar, u.role,
      CASE WHEN c.id IS NOT NULL
        THEN json_build_object('id', c.id, 'name', c.name, 'imageUrl', c.image_url)
      END AS club
    FROM users u LEFT JOIN clubs c ON c.id = u.club_id WHERE u.id = $1
  `, [request.user.sub])
  if (!user) return reply.code(401).send({ message: 'Unauthorized' })
  reply.headers({ 'cache-control': 'no-store', vary: 'Authorization, Cookie' })
  return { user }
})

app.post('/events/:eventId/register', { onRequest: authenticate }, async (request, reply) => {
  const { rows: [registration] } = await pool.query(`
    WITH r AS (
      INSERT INTO event_registrations (user_id, event_id) VALUES ($1, $2)
      ON CONFLICT (user_id, event_id) DO NOTHING
      RETURNING *
    )
    SELECT
      r.id, r.user_id AS "userId", r.event_id AS "eventId", r.registered_at AS "registeredAt",
      json_build_object('title', e.title) AS event,
      json_build_object('firstName', u.first_name, 'lastName', u.last_name) AS user
    FROM r JOIN events e ON e.id = r.event_id JOIN users u ON u.id = r.user_id
  `, [request.user.sub, request.params.eventId])
  if (!registration) return reply.code(400).send({ message: 'You have already registered for this event' })
  return reply.code(201).send({ registration })
})

async function authenticate (request, reply) {
  try {
    await request.jwtVerify()
  } catch {
    return reply.code(401).send({ message: 'Invalid or expired token' })
  }
}

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
