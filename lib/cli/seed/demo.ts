import type { TransactionSql } from 'postgres'

import { drawSeatsIn, newSeed } from '../../agenda/draws.ts'
import type { Role } from '../../values/roles.ts'
import { EXAMPLE_ID, EXAMPLE_PASSWORD } from '../../values/schemas.ts'
import { BLOGS, CLUBS, EVENTS, MEMBERSHIPS, MENTORS, PEOPLE, TESTIMONIALS } from './demo-data.ts'
import { portrait, scene } from './demo-pictures.ts'

/** The public password of all demo accounts. */
export const PASSWORD = EXAMPLE_PASSWORD

const DOMAIN = 'demo.example.org'

/** The position of the student with the id of the examples. */
const STUDENT = PEOPLE.findIndex(({ name }) => name === 'student')

/** The demo accounts that the command prints. */
export const SIGN_INS: { role: Role, email: string }[] = [
  { role: 'ADMIN', email: `admin@${DOMAIN}` },
  { role: 'CLUB_HEAD', email: `head@${DOMAIN}` },
  { role: 'STUDENT', email: `student@${DOMAIN}` },
]

/** Adds the demo community, with dates relative to today. Takes a password hash. Returns the number of added rows. */
export async function seedDemo (sql: TransactionSql, password: string) {
  const clubs = await sql`
    INSERT INTO clubs (id, name, description, image_url)
    SELECT coalesce(id, new_id()), name, description, picture
    FROM jsonb_to_recordset(${sql.json(withId(CLUBS.map(club => ({ ...club, picture: scene(club.name) }))))})
      AS club (id uuid, name text, description text, picture text)
  `

  const users = await sql`
    INSERT INTO users (
      id, email, password, first_name, last_name, role, club_id, avatar, created_at, email_verified_at
    )
    SELECT
      coalesce(person.id, new_id()), person.name || '@' || ${DOMAIN}, ${password}, "firstName", "lastName", role,
      clubs.id, picture, created_at, created_at
    FROM jsonb_to_recordset(${sql.json(withId(withPortraits(PEOPLE), STUDENT))})
      AS person (id uuid, name text, "firstName" text, "lastName" text, role text, club text, picture text)
      LEFT JOIN clubs ON clubs.name = person.club
      CROSS JOIN LATERAL (
        SELECT now() - interval '1 year' + random() * interval '200 days' + 0 * length(person.name) * interval '1 day'
      ) AS joined (created_at)
  `
  await sql`
    UPDATE clubs SET club_head_id = users.id
    FROM jsonb_to_recordset(${sql.json(CLUBS)}) AS club (name text, head text)
      JOIN users ON users.email = head || '@' || ${DOMAIN}
    WHERE clubs.name = club.name
  `

  await sql`
    INSERT INTO club_details (club_id, joining)
    SELECT clubs.id, joining FROM jsonb_to_recordset(${sql.json(CLUBS)}) AS club (name text, joining text)
      JOIN clubs ON clubs.name = club.name
    WHERE joining IS NOT NULL
  `
  // A trigger has added the memberships in the club on each card.
  await sql`
    INSERT INTO club_members (user_id, club_id, state, message, offered, offered_by, offered_at, changed_at)
    SELECT
      users.id, clubs.id, state, message, offered, author.id, CASE WHEN offered IS NOT NULL THEN now() END,
      now() - place * interval '1 day'
    FROM ROWS FROM (
      jsonb_to_recordset(${sql.json(MEMBERSHIPS)})
        AS (name text, club text, state text, message text, offered text, by text)
    ) WITH ORDINALITY AS membership (name, club, state, message, offered, by, place)
      JOIN clubs ON clubs.name = club
      JOIN users ON users.email = membership.name || '@' || ${DOMAIN}
      LEFT JOIN users AS author ON author.email = by || '@' || ${DOMAIN}
    ON CONFLICT (user_id, club_id) DO UPDATE SET
      offered = excluded.offered, offered_by = excluded.offered_by, offered_at = excluded.offered_at
  `

  const inClubs = BLOGS.map(blog => ({ ...blog, club: clubOf(blog.author) }))
  const blogs = await sql`
    INSERT INTO blogs (id, title, content, image_url, status, author_id, created_at)
    SELECT
      coalesce(blog.id, new_id()), title, content, picture, status, users.id, now() - "daysAgo" * interval '1 day'
    FROM jsonb_to_recordset(${sql.json(withId(withScenes(inClubs)))})
      AS blog (id uuid, title text, content text, status text, author text, "daysAgo" int, picture text)
      JOIN users ON users.email = author || '@' || ${DOMAIN}
  `

  const mentors = await sql`
    INSERT INTO mentors (id, name, expertise, image_url, network_url, club_id)
    SELECT coalesce(mentor.id, new_id()), mentor.name, expertise, picture, coalesce("networkUrl", ''), clubs.id
    FROM jsonb_to_recordset(${sql.json(withId(withPortraits(MENTORS)))})
      AS mentor (id uuid, name text, expertise text, "networkUrl" text, club text, picture text)
      JOIN clubs ON clubs.name = club
  `
  const likes = await sql`
    INSERT INTO mentor_likes (user_id, mentor_id)
    SELECT users.id, mentors.id
    FROM jsonb_to_recordset(${sql.json(MENTORS)}) AS mentor (name text, club text, "likedBy" jsonb)
      JOIN clubs ON clubs.name = club
      JOIN mentors ON mentors.club_id = clubs.id AND mentors.name = mentor.name
      CROSS JOIN jsonb_array_elements_text("likedBy") AS person
      JOIN users ON users.email = person || '@' || ${DOMAIN}
  `

  const testimonials = await sql`
    INSERT INTO testimonials (id, name, batch_year, content, image_url, created_at)
    SELECT
      coalesce(id, new_id()), name, extract(year FROM now()) - "yearsAgo", content, picture,
      now() - "yearsAgo" * interval '30 days'
    FROM jsonb_to_recordset(${sql.json(withId(withPortraits(TESTIMONIALS)))})
      AS testimonial (id uuid, name text, "yearsAgo" int, content text, picture text)
  `

  const events = await sql`
    INSERT INTO events (id, title, description, image_url, date, club_id, created_at)
    SELECT
      coalesce(event.id, new_id()), title, event.description, picture,
      date_trunc('day', now(), 'UTC') + "inDays" * interval '1 day' + hour * interval '1 hour',
      clubs.id, now() + least("inDays", 0) * interval '1 day' - interval '30 days'
    FROM jsonb_to_recordset(${sql.json(withId(withScenes(EVENTS)))})
      AS event (id uuid, title text, description text, "inDays" int, hour int, club text, picture text)
      JOIN clubs ON clubs.name = club
  `
  // One a day, the last of them the day before the event, or before today.
  const registrations = await sql`
    INSERT INTO event_registrations (id, user_id, event_id, registered_at)
    SELECT
      CASE WHEN events.id = users.id THEN events.id ELSE new_id() END,
      users.id, events.id, least(date, now()) - place * interval '1 day'
    FROM jsonb_to_recordset(${sql.json(EVENTS)}) AS event (title text, club text, registered jsonb)
      JOIN clubs ON clubs.name = club
      JOIN events ON events.club_id = clubs.id AND events.title = event.title
      CROSS JOIN jsonb_array_elements_text(registered) WITH ORDINALITY AS person (name, place)
      JOIN users ON users.email = person.name || '@' || ${DOMAIN}
  `

  // After the registrations, so that people are in line since they registered.
  const details = await sql<{ id: string, isDrawn: boolean }[]>`
    INSERT INTO event_details (event_id, duration_ms, place, online_url, capacity, draw_at, draw_from, draw_seed)
    SELECT
      events.id, hours * 3600000, event.place, "onlineUrl", capacity,
      date_trunc('hour', now()) + "drawInDays" * interval '1 day',
      CASE WHEN "drawInDays" IS NOT NULL THEN events.created_at END,
      CASE WHEN "drawInDays" IS NOT NULL THEN ${newSeed(sql)} END
    FROM jsonb_to_recordset(${sql.json(EVENTS)}) AS event (
      title text, club text, hours int, place text, "onlineUrl" text, capacity int, "drawInDays" int
    )
      JOIN clubs ON clubs.name = club
      JOIN events ON events.club_id = clubs.id AND events.title = event.title
    WHERE event.place IS NOT NULL
    RETURNING event_id AS id, draw_at <= now() AS "isDrawn"
  `
  // The people of the demo data have no inbox.
  for (const { id, isDrawn } of details) if (isDrawn) await drawSeatsIn(sql, id, async () => {})

  return {
    clubs: clubs.count,
    users: users.count,
    events: events.count,
    registrations: registrations.count,
    blogs: blogs.count,
    mentors: mentors.count,
    likes: likes.count,
    testimonials: testimonials.count,
  }
}

/** Gives one of the items the id of the examples. */
const withId = <Item extends object>(items: Item[], index = 0) =>
  items.map((item, position) => position === index ? { ...item, id: EXAMPLE_ID } : item)

/** Gives each item a picture of a person. */
const withPortraits = <Item>(items: Item[]) => items.map((item, index) => ({ ...item, picture: portrait(index) }))

/** Gives each item a picture of its club. */
const withScenes = <Item extends { club: string }>(items: Item[]) =>
  items.map((item, index) => ({ ...item, picture: scene(item.club, index) }))

const clubOf = (author: string) => PEOPLE.find(({ name }) => name === author)!.club!
