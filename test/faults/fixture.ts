import { SignJWT } from 'jose'
import postgres from 'postgres'

/** Signs the tokens of all requests. */
export const SECRET = 'the secret of the fault tests, known to all'

/** The password of all accounts that can sign in. */
export const PASSWORD = 'correct horse'

const STUDENTS = 500
const EVENTS = 100
const MENTORS = 100
const BLOGS = 40

export interface Person {
  id: string
  token: string
}

/** The rows of a database, and pairs that are not used yet. */
export interface Fixture {
  /** A URL that bypasses the faults. */
  databaseUrl: string
  admin: Person
  students: Person[]
  /** Blogs for updates. */
  blogs: string[]
  /** Unused pairs of students and events, and of students and mentors. */
  registrations: Iterator<[Person, string], undefined>
  likes: Iterator<[Person, string], undefined>
  /** Runs queries on a new connection. */
  look<T> (work: (sql: postgres.Sql) => Promise<T>): Promise<T>
}

/** Inserts rows into a migrated database. */
export async function createFixture (databaseUrl: string): Promise<Fixture> {
  const look = async <T>(work: (sql: postgres.Sql) => Promise<T>) => {
    const sql = postgres(databaseUrl, { max: 1, onnotice () {} })
    try {
      return await work(sql)
    } finally {
      await sql.end()
    }
  }
  const rows = await look(async sql => {
    const ids = async (query: Promise<{ id: string }[]>) => (await query).map(({ id }) => id)
    const [club] = await ids(sql`INSERT INTO clubs (name, description) VALUES ('Chess', 'They play') RETURNING id`)
    const [admin] = await ids(sql`
      INSERT INTO users (email, password, first_name, last_name, role)
      VALUES ('admin@example.org', '!', 'Ada', 'Admin', 'ADMIN') RETURNING id
    `)
    return {
      admin: admin!,
      students: await ids(sql`
        INSERT INTO users (email, password, first_name, last_name)
        SELECT 'student-' || n || '@example.org', '!', 'Grace', 'Student' FROM generate_series(1, ${STUDENTS}::int) AS n
        RETURNING id
      `),
      events: await ids(sql`
        INSERT INTO events (title, description, date, club_id)
        SELECT 'Event ' || n, 'Something to register for', now(), ${club!} FROM generate_series(1, ${EVENTS}::int) AS n
        RETURNING id
      `),
      mentors: await ids(sql`
        INSERT INTO mentors (name, expertise, image_url, club_id)
        SELECT 'Mentor ' || n, 'Openings', 'https://example.org/mentor.jpg', ${club!}
        FROM generate_series(1, ${MENTORS}::int) AS n
        RETURNING id
      `),
      blogs: await ids(sql`
        INSERT INTO blogs (title, content, author_id, status)
        SELECT 'Blog ' || n, 'Something to be read by all', ${admin!}, 'PUBLISHED'
        FROM generate_series(1, ${BLOGS}::int) AS n
        RETURNING id
      `),
    }
  })
  const students = await Promise.all(rows.students.map(async id => ({ id, token: await signToken(id, 'STUDENT') })))
  return {
    databaseUrl,
    admin: { id: rows.admin, token: await signToken(rows.admin, 'ADMIN') },
    students,
    blogs: rows.blogs,
    registrations: pairs(students, rows.events),
    likes: pairs(students, rows.mentors),
    look,
  }
}

/** All pairs, in an order in which neighbours have no row in common. */
function * pairs (students: Person[], ids: string[]): Generator<[Person, string], undefined> {
  for (let round = 0; round < ids.length; round++) {
    for (const [n, student] of students.entries()) yield [student, ids[(n + round) % ids.length]!]
  }
}

export function signToken (id: string, role: string) {
  return new SignJWT({ role }).setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
    .setSubject(id).setIssuedAt().setExpirationTime('1d').sign(new TextEncoder().encode(SECRET))
}
