import type { Fragment, TransactionSql } from 'postgres'

/** Numbers of rows to add per table, in the order of the foreign keys. */
export type Amounts = Record<
  'clubs' | 'users' | 'events' | 'registrations' | 'blogs' | 'mentors' | 'likes' | 'testimonials', number
>

const FIRST_NAMES = [
  'Amara', 'Bilal', 'Chiara', 'Dmitri', 'Elif', 'Farid', 'Grace', 'Hana', 'Ivo', 'Jaya', 'Kofi', 'Leila', 'Mateo',
  'Nia', 'Omar', 'Priya', 'Quynh', 'Rosa', 'Sven',
]

const LAST_NAMES = [
  'Adeyemi', 'Bauer', 'Chen', 'Diaz', 'Eriksen', 'Fofana', 'Gupta', 'Haddad', 'Ito', 'Jansen', 'Kim', 'Lopez', 'Mbeki',
  'Novak', 'Okafor', 'Petrov', 'Rossi',
]

const SENTENCES = [
  'We met every Thursday in the old library, and left when the lights went out.',
  'A question after a lecture became a project with eleven people and a budget.',
  'The first attempt failed in front of everybody, and taught us more than the second.',
  'Bring a friend who thinks that this is not for them: most of us came here like that.',
  'There is always a poster to hang or a cable to solder, so an hour of your time helps.',
  'Our mentors asked us about our attempts before they said anything.',
  'Next term we will do it again, with more time to prepare and fewer slides.',
]

/**
 * Adds rows, the same every time except ids and times. Rows are numbered from 0, and everything in a row follows from
 * its number: nothing is random or sorted. User 0 is an admin, and the next users are each the head of a club.
 *
 * An event's registrations have consecutive numbers. Of R registrations of U users for E events, number n belongs to
 * user n % U and event n * E / R: as long as R <= U * E, an event has at most U registrations, so that no pair occurs
 * twice. The same holds for likes. Only the next events are in the future. Users join before they register.
 */
export async function seed (sql: TransactionSql, amounts: Amounts, password: string) {
  const { users, clubs, events, registrations, blogs, mentors, likes, testimonials } = amounts

  async function add (kind: keyof Amounts, insert: (numbers: Fragment) => Promise<unknown>) {
    if (amounts[kind] > 0) await insert(sql`generate_series(0, ${amounts[kind]}::bigint - 1) AS n`)
  }

  /** SQL: picks texts round robin. */
  const pick = (texts: string[], number: Fragment) => sql`
    split_part(${texts.join('|')}, '|', 1 + (${number} % ${texts.length})::int)
  `
  const firstName = pick(FIRST_NAMES, sql`n`)
  const lastName = pick(LAST_NAMES, sql`n`)
  const sentence = pick(SENTENCES, sql`n`)
  // One sentence per digit of n in base 7, so that 2,401 paragraphs differ.
  const paragraph = sql`concat_ws(
    ' ', ${sentence}, ${pick(SENTENCES, sql`n / 7`)}, ${pick(SENTENCES, sql`n / 49`)}, ${pick(SENTENCES, sql`n / 343`)}
  )`
  const imageUrl = (folder: string) => sql`'https://images.example.org/' || ${folder} || '/' || n + 1 || '.jpg'`

  // The ids of referenced rows, by number.
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
      LEFT JOIN seed_users ON seed_users.number = n + 1
  `)

  await add('users', numbers => sql`
    INSERT INTO users (id, email, password, first_name, last_name, role, club_id, created_at)
    SELECT
      seed_users.id,
      'user' || n || '@example.org', ${password}, ${firstName}, ${lastName},
      CASE WHEN n = 0 THEN 'ADMIN' WHEN n <= ${clubs}::bigint THEN 'CLUB_HEAD' ELSE 'STUDENT' END,
      seed_clubs.id,
      now() - interval '1 year' - interval '2 years' * (n / ${users}::float)
    FROM ${numbers}
      JOIN seed_users ON seed_users.number = n
      LEFT JOIN seed_clubs ON seed_clubs.number = greatest(n - 1, 0) % nullif(${clubs}::bigint, 0)
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
}
