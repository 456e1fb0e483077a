import type { Fragment, TransactionSql } from 'postgres'

import { type Amounts, DOMAIN } from './seeding.ts'

const FIRST_NAMES = [
  'Amara', 'Bilal', 'Chiara', 'Dmitri', 'Elif', 'Farid', 'Grace', 'Hana', 'Ivo', 'Jaya', 'Kofi', 'Leila', 'Mateo',
  'Nia', 'Omar', 'Priya', 'Quynh', 'Rosa', 'Sven',
]

const LAST_NAMES = [
  'Adeyemi', 'Bauer', 'Chen', 'Diaz', 'Eriksen', 'Fofana', 'Gupta', 'Haddad', 'Ito', 'Jansen', 'Kim', 'Lopez', 'Mbeki',
  'Novak', 'Okafor', 'Petrov', 'Rossi',
]

const SENTENCES = [
  'We met every Thursday in the old library, and nobody wanted to leave before the lights went out.',
  'What began as a question after a lecture became a project with eleven people and a budget.',
  'The first attempt failed in front of everybody, and taught us more than the second, which worked.',
  'Bring a friend who thinks that this is not for them: that is how most of us came here.',
  'Who has an hour to spare can help, for there is always a poster to hang or a cable to solder.',
  'Our mentors gave us no answers, they asked what we had tried so far.',
  'Next term we do it again, with more time to prepare and fewer slides.',
]

/**
 * Adds as many rows as asked for, the same every time but for ids and times. Rows are numbered from 0, and everything
 * in a row follows from its number: nothing is random or sorted. Users 0, 1 and 2 are the admin, the head and the
 * student to sign in as, in club 0; users from 3 on are in clubs 1, 2, …, the first in each is its head. Prints each
 * kind that is done on standard error.
 *
 * An event's registrations have consecutive numbers. Of R registrations of U users for E events, number n is that of
 * user n % U for event n * E / R: as long as R <= U * E, an event has at most U of them, so that no pair occurs twice.
 * Likes are the same. All times lie in the past but those of the next events; people join before they register for
 * anything, and register before the event.
 */
export async function seedMany (sql: TransactionSql, amounts: Amounts, password: string): Promise<Amounts> {
  const { users, clubs, events, registrations, blogs, mentors, likes, testimonials } = amounts

  async function add (kind: keyof Amounts, insert: (numbers: Fragment) => Promise<unknown>) {
    const total = amounts[kind]
    if (total === 0) return
    await insert(sql`generate_series(0, ${total}::bigint - 1) AS n`)
    console.error(`${kind}: ${total.toLocaleString('en')}`)
  }

  /** The text whose turn it is. */
  const pick = (texts: string[], number: Fragment) => sql`
    split_part(${texts.join('|')}, '|', 1 + (${number} % ${texts.length})::int)
  `
  const firstName = pick(FIRST_NAMES, sql`n`)
  const lastName = pick(LAST_NAMES, sql`n`)
  const sentence = pick(SENTENCES, sql`n`)
  // One sentence for each digit of n to the base of 7: two thousand paragraphs before one comes again.
  const paragraph = sql`concat_ws(
    ' ', ${sentence}, ${pick(SENTENCES, sql`n / 7`)}, ${pick(SENTENCES, sql`n / 49`)}, ${pick(SENTENCES, sql`n / 343`)}
  )`
  const imageUrl = (folder: string) => sql`'https://images.example.org/' || ${folder} || '/' || n + 1 || '.jpg'`

  // The ids of what others refer to, by number.
  for (const kind of ['users', 'clubs', 'events', 'mentors'] as const) {
    const table = sql(`seed_${kind}`)
    await sql`
      CREATE TEMPORARY TABLE ${table} (number bigint PRIMARY KEY, id uuid NOT NULL DEFAULT new_id()) ON COMMIT DROP
    `
    await sql`INSERT INTO ${table} (number) SELECT generate_series(0, ${amounts[kind]}::bigint - 1)`
    await sql`ANALYZE ${table}`
  }

  await add('clubs', numbers => sql`
    INSERT INTO clubs (id, name, description, image_url, club_head_id)
    SELECT seed_clubs.id, 'Club ' || n + 1, ${sentence}, ${imageUrl('clubs')}, seed_users.id
    FROM ${numbers}
      JOIN seed_clubs ON seed_clubs.number = n
      LEFT JOIN seed_users ON seed_users.number = CASE n WHEN 0 THEN 1 ELSE n + 2 END
  `)

  await add('users', numbers => sql`
    INSERT INTO users (id, email, password, first_name, last_name, role, club_id, created_at)
    SELECT
      seed_users.id,
      CASE n WHEN 0 THEN 'admin' WHEN 1 THEN 'head' WHEN 2 THEN 'student' ELSE 'user' || n + 1 END || '@' || ${DOMAIN},
      ${password}, ${firstName}, ${lastName},
      CASE
        WHEN n = 0 THEN 'ADMIN'
        WHEN n = 1 OR (n > 2 AND n < ${clubs}::bigint + 2) THEN 'CLUB_HEAD'
        ELSE 'STUDENT'
      END,
      seed_clubs.id,
      now() - interval '1 year' - interval '2 years' * (n / ${users}::float)
    FROM ${numbers}
      JOIN seed_users ON seed_users.number = n
      LEFT JOIN seed_clubs ON seed_clubs.number = greatest(n - 2, 0) % nullif(${clubs}::bigint, 0)
  `)

  await add('events', numbers => sql`
    INSERT INTO events (id, title, description, image_url, date, club_id, created_at)
    SELECT
      seed_events.id, 'Event ' || n + 1, ${paragraph}, ${imageUrl('events')}, time + interval '60 days', seed_clubs.id,
      time - interval '30 days'
    FROM ${numbers}
      JOIN seed_events ON seed_events.number = n
      JOIN seed_clubs ON seed_clubs.number = n % ${clubs}
      CROSS JOIN LATERAL (SELECT now() - interval '1 year' * (n / ${events}::float) AS time) AS times
  `)

  await add('registrations', numbers => sql`
    INSERT INTO event_registrations (user_id, event_id, registered_at)
    SELECT seed_users.id, seed_events.id, now() - interval '1 year' * (n / ${registrations}::float)
    FROM ${numbers}
      JOIN seed_users ON seed_users.number = n % ${users}
      JOIN seed_events ON seed_events.number = n * ${events} / ${registrations}
  `)

  await add('blogs', numbers => sql`
    INSERT INTO blogs (title, content, image_url, status, author_id, created_at)
    SELECT
      'Blog ' || n + 1, ${paragraph}, ${imageUrl('blogs')},
      CASE n % 10 WHEN 8 THEN 'DRAFT' WHEN 9 THEN 'ARCHIVED' ELSE 'PUBLISHED' END,
      seed_users.id, now() - interval '1 year' * (n / ${blogs}::float)
    FROM ${numbers} JOIN seed_users ON seed_users.number = n % ${users}
  `)

  await add('mentors', numbers => sql`
    INSERT INTO mentors (id, name, expertise, image_url, network_url, club_id)
    SELECT
      seed_mentors.id, ${firstName} || ' ' || ${lastName}, 'Subject ' || n + 1, ${imageUrl('mentors')},
      'https://network.example.org/mentor' || n + 1, seed_clubs.id
    FROM ${numbers}
      JOIN seed_mentors ON seed_mentors.number = n
      JOIN seed_clubs ON seed_clubs.number = n % ${clubs}
  `)

  await add('likes', numbers => sql`
    INSERT INTO mentor_likes (user_id, mentor_id, created_at)
    SELECT seed_users.id, seed_mentors.id, now() - interval '1 year' * (n / ${likes}::float)
    FROM ${numbers}
      JOIN seed_users ON seed_users.number = n % ${users}
      JOIN seed_mentors ON seed_mentors.number = n * ${mentors} / ${likes}
  `)

  await add('testimonials', numbers => sql`
    INSERT INTO testimonials (name, image_url, batch_year, content, created_at)
    SELECT
      ${firstName} || ' ' || ${lastName}, ${imageUrl('testimonials')}, extract(year FROM now()) - 1 - n % 20,
      ${paragraph}, now() - interval '1 year' * (n / ${testimonials}::float)
    FROM ${numbers}
  `)

  return amounts
}
