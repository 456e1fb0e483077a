import type { Fixture } from './fixture.ts'

/** The acknowledged writes, to be compared with the database afterwards. */
export class Ledger {
  readonly registrations = new Map<string, { user: string, event: string }>()
  readonly likes: { user: string, mentor: string }[] = []
  readonly blogs = new Map<string, { author: string, title: string, content: string }>()
  readonly accounts = new Map<string, { email: string, firstName: string, lastName: string }>()
  /** By blog, all titles that were sent, and the index of the last one acknowledged. */
  readonly titles = new Map<string, { sent: string[], acknowledged: number }>()
  #updates = 0

  get size () {
    return this.registrations.size + this.likes.length + this.blogs.size + this.accounts.size + this.#updates
  }

  /** Records a title before it is sent. Returns a function that acknowledges it. */
  updateTitle (blog: string, title: string) {
    const titles = this.titles.get(blog) ?? { sent: [], acknowledged: -1 }
    this.titles.set(blog, titles)
    const index = titles.sent.push(title) - 1
    return () => {
      titles.acknowledged = index
      this.#updates++
    }
  }

  #pairs () {
    return this.likes.map(({ user, mentor }) => `${user} ${mentor}`)
  }

  /** The acknowledged writes that the database does not have. */
  async findLost ({ look }: Fixture): Promise<string[]> {
    const lost: string[] = []
    await look(async sql => {
      const compare = <T extends object>(name: string, expected: Map<string, T>, rows: (T & { id: string })[]) => {
        const found = new Map(rows.map(({ id, ...rest }) => [id, JSON.stringify(rest)]))
        for (const [id, content] of expected) {
          if (found.get(id) !== JSON.stringify(content)) lost.push(`${name} ${id}: ${found.get(id) ?? 'no row'}`)
        }
      }
      compare('registration', this.registrations, await sql`
        SELECT id, user_id AS user, event_id AS event FROM event_registrations
        WHERE id = ANY(${[...this.registrations.keys()]}::uuid[])
      `)
      compare('blog', this.blogs, await sql`
        SELECT id, author_id AS author, title, content FROM blogs
        WHERE id = ANY(${[...this.blogs.keys()]}::uuid[]) AND status = 'DRAFT'
      `)
      compare('account', this.accounts, await sql`
        SELECT id, email, first_name AS "firstName", last_name AS "lastName" FROM users
        WHERE id = ANY(${[...this.accounts.keys()]}::uuid[]) AND role = 'STUDENT' AND password LIKE '$argon2id$%'
      `)

      const likes = await sql`SELECT concat_ws(' ', user_id, mentor_id) AS pair FROM mentor_likes`
      const liked = new Set(likes.map(({ pair }) => pair))
      lost.push(...this.#pairs().filter(pair => !liked.has(pair)).map(pair => `like ${pair}`))

      const titles = await sql`SELECT id, title FROM blogs WHERE id = ANY(${[...this.titles.keys()]}::uuid[])`
      for (const { id, title } of titles) {
        const { sent, acknowledged } = this.titles.get(id)!
        // Later titles may have been written although their requests failed.
        if (acknowledged >= 0 && sent.indexOf(title) < acknowledged) lost.push(`title of ${id}: ${title}`)
      }
    })
    return lost
  }
}

/** Inconsistencies in the database: wrong counts, and operations that were done in part. */
export async function findContradictions ({ look }: Fixture): Promise<string[]> {
  return look(async sql => {
    const rows = await sql<{ what: string }[]>`
      SELECT 'registrations of event ' || events.id AS what FROM events WHERE
        (SELECT count(*) FROM event_registrations WHERE event_id = events.id) <>
        (SELECT coalesce(sum(count), 0) FROM event_registration_counts WHERE event_id = events.id)
      UNION ALL
      SELECT 'likes of mentor ' || mentors.id FROM mentors WHERE
        (SELECT count(*) FROM mentor_likes WHERE mentor_id = mentors.id) <>
        (SELECT coalesce(sum(count), 0) FROM mentor_like_counts WHERE mentor_id = mentors.id)
      UNION ALL
      SELECT 'count of events' WHERE
        (SELECT count(*) FROM events) <> (SELECT sum(count) FROM row_counts WHERE relation = 'events')
      UNION ALL
      SELECT 'head of club ' || clubs.id FROM clubs JOIN users ON users.id = club_head_id
        WHERE (users.role, users.club_id) IS DISTINCT FROM ('CLUB_HEAD', clubs.id)
    `
    return rows.map(({ what }) => `${what} is not right`)
  })
}
