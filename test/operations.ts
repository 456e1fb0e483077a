// Every operation, once. Tests of common behaviour use this list: access, failure without the database, sharing of
// responses, and that clients cannot set other fields.
import type { FastifyContextConfig, FastifyInstance } from 'fastify'

import type { Role } from '#lib/values/roles.js'
import { createSecretToken, hashSecretToken } from '#lib/auth/secret-tokens.js'
import { ACCOUNT, BLOG, HASH, MENTOR, PASSWORD, PNG, TESTIMONIAL } from './fixtures.ts'
import { inject, insert, type Person, person } from './helper.ts'
import * as rules from './rules.ts'

type Rule = rules.Rule

export interface Operation {
  /** Access: anyone, any user, or these roles. */
  access: 'anyone' | readonly Role[]
  /** The role of the person who sends it, if any user may and not all succeed. */
  as?: Role
  /** How it fails; one without a failure does not use the database. */
  failure?: NonNullable<FastifyContextConfig['failure']>
  /** Who shares the response. A `GET` without it is not cached. */
  cache?: 'public' | 'private'
  /** The `Cache-Control` of a success, if not `no-store`. */
  cacheControl?: string
  /** A valid body, with every field that it stores. */
  body?: object
  /** Its media type, if not JSON. */
  type?: string
  /** Inserts the rows that a success needs. Returns the id for the path, or more of the body. */
  given?: (world: World) => Promise<{ id?: string, body?: object }>
  /** Values that it stores by itself. */
  stores?: string[]
  /** The rules of the fields in the body, and the fields that it requires. */
  fields?: Record<string, Rule>
  required?: string[]
  /** The message of its 404 for an unknown id; without it, it fails. */
  unknown?: string
  /** The message of its 403 for a club head, unless the event is of their club. */
  ownClub?: string
  /** Its response to an empty id, if not a validation error. */
  empty?: [status: number, message: string]
  /** The response for a deleted user and for a token without a user id: the message or the body. */
  gone?: [status: number, body: string | object]
  nameless?: [status: number, body: string | object]
}

/** The rows that the operations use. */
interface World {
  app: FastifyInstance
  /** The club of the club head. */
  club: string
  people: Record<Role, Person>
}

export async function createWorld (app: FastifyInstance): Promise<World> {
  const club = await insert(app, 'clubs')
  const [STUDENT, CLUB_HEAD, ADMIN] = await Promise.all([
    person(app), person(app, 'CLUB_HEAD', { club_id: club }), person(app, 'ADMIN'),
  ])
  return { app, club, people: { STUDENT, CLUB_HEAD, ADMIN } }
}

export const ANY_USER: readonly Role[] = []
const CONTRIBUTORS: readonly Role[] = ['STUDENT', 'CLUB_HEAD', 'ADMIN']
const ORGANIZERS: readonly Role[] = ['CLUB_HEAD', 'ADMIN']
const HEADS: readonly Role[] = ['CLUB_HEAD']
const ADMINS: readonly Role[] = ['ADMIN']

/** The first role that may use an operation; `undefined` for public operations. */
export function roleFor ({ access, as }: Operation): Role | undefined {
  return access === 'anyone' ? undefined : as ?? access[0] ?? 'STUDENT'
}

/** The path of a request. `id` is the value of its parameter, or the values of both with a slash between them. */
export function pathWith (path: string, id: string) {
  const ids = path.split(':').length > 2 ? id.split('/') : [id]
  return path.replace(/:\w+/g, () => ids.shift() ?? 'none')
}

const inClub = async ({ club }: World) => ({ body: { clubId: club } })
const ownClub = async ({ club }: World) => ({ id: club })
const blog = async ({ app, people }: World) => ({ id: await insert(app, 'blogs', { author_id: people.STUDENT.id }) })
const user = async ({ app }: World) => ({ id: (await person(app)).id })
const mentor = async ({ app, club }: World) => ({ id: await insert(app, 'mentors', { club_id: club }) })
const testimonial = async ({ app }: World) => ({ id: await insert(app, 'testimonials') })
const event = async ({ app, club }: World) =>
  ({ id: await insert(app, 'events', { date: new Date('2030-01-01'), club_id: club }) })
/** An event whose seats will be drawn. */
const withDraw = async (world: World) => {
  const { id } = await event(world)
  await world.app.sql`
    INSERT INTO event_details (event_id, capacity, draw_at, draw_from, draw_seed)
    VALUES (${id}, 1, '2029-12-31', now(), repeat('0', 64))
  `
  return { id }
}
/** An event that the student has registered for. */
const registered = async (world: World) => {
  const { id } = await event(world)
  await insert(world.app, 'event_registrations', { event_id: id, user_id: world.people.STUDENT.id })
  return { id }
}
/** A person with a request to join the club. */
const asked = async ({ app, club }: World) => {
  const { id } = await person(app)
  await app.sql`INSERT INTO club_members (user_id, club_id, state) VALUES (${id}, ${club}, 'requested')`
  return { id: `${club}/${id}` }
}
/** A new club of the student, with an office that an admin offers. */
const membership = ({ offered }: { offered?: 'head' }) => async ({ app, people }: World) => {
  const club = await insert(app, 'clubs')
  const offer = offered && { offered, offered_by: people.ADMIN.id, offered_at: new Date() }
  const member = { user_id: people.STUDENT.id, club_id: club, state: 'member', ...offer }
  await app.sql`INSERT INTO club_members ${app.sql(member)}`
  // Only a verified person can accept.
  if (offered) await app.sql`UPDATE users SET email_verified_at = now() WHERE id = ${people.STUDENT.id}`
  return { id: club }
}
const picture = async ({ app, people }: World) => ({
  id: await insert(app, 'pictures', { user_id: people.STUDENT.id, large: PNG, small: PNG, width: 1, height: 1 }),
})
const both = (one: typeof inClub, other: typeof user) => async (world: World) =>
  ({ ...await one(world), ...await other(world) })

const ownPassword = async ({ app, people }: World) => {
  await app.sql`UPDATE users SET password = ${HASH} WHERE id = ${people.STUDENT.id}`
  return {}
}

/** The token in an email to a new user. */
const link = (purpose: string) => async (world: World) => {
  const token = createSecretToken()
  const { id } = await user(world)
  await world.app.sql`INSERT INTO account_tokens VALUES (${id}, ${purpose}, ${hashSecretToken(token)}, '2999-01-01')`
  return { body: { token } }
}

const MENTOR_FIELDS = {
  name: rules.text(1), expertise: rules.text(2), imageUrl: rules.url, networkUrl: rules.anyText, clubId: rules.clubId,
}
const TESTIMONIAL_FIELDS = {
  name: rules.text(1), content: rules.text(1), batchYear: rules.integer(1900, 3000), imageUrl: rules.urlOrEmpty,
}
const EVENT_FIELDS = {
  title: rules.text(3), description: rules.text(10), data: rules.date, imageUrl: rules.url,
}
const AGENDA_FIELDS = {
  title: EVENT_FIELDS.title, description: EVENT_FIELDS.description, imageUrl: rules.url, date: rules.dateTime,
}
const DETAIL_FIELDS = {
  endsAt: rules.endAfter2030,
  place: rules.nullable(rules.visible(500)),
  onlineUrl: rules.nullable(rules.webUrl),
  capacity: rules.nullable(rules.integer(1, 1_000_000)),
  opensAt: rules.opens,
  closesAt: rules.closes,
  drawAt: rules.draws,
}
/** The first value of each field. */
const valid = <T extends Record<string, Rule>>(fields: T) =>
  Object.fromEntries(Object.entries(fields).map(([field, { takes }]) => [field, takes[0]])) as Record<keyof T, any>
export const EVENT = valid(EVENT_FIELDS)
/** Details of an event that begins with 2030. */
export const DETAILS = valid(DETAIL_FIELDS)
/** An event with its details. */
export const AGENDA_EVENT = { ...valid(AGENDA_FIELDS), endsAt: '2031-02-03T12:00:00.000Z', place: 'Room 1' }

/** Has two paths. */
const MESSAGE: Operation = {
  access: ORGANIZERS,
  failure: 'Error sending the message',
  body: { subject: 'Boards', text: 'Bring a board, please.' },
  given: event,
}

export const OPERATIONS: Record<string, Operation> = {
  'POST /auth/register': {
    access: 'anyone',
    failure: 'Registration failed',
    body: { ...ACCOUNT, email: 'new@example.org' },
    fields: { email: rules.email, password: rules.password, firstName: rules.text(1), lastName: rules.text(1) },
    required: ['email', 'password', 'firstName', 'lastName'],
  },
  'POST /auth/login': {
    access: 'anyone',
    failure: 'Login failed',
    body: { email: 'known@example.org', password: PASSWORD },
    fields: { email: { ...rules.email, takes: [] }, password: rules.anyPassword },
    required: ['email', 'password'],
    async given ({ app }) {
      await inject(app, 'POST', '/auth/register', { ...ACCOUNT, email: 'known@example.org' })
      return {}
    },
  },
  'GET /auth/me': {
    access: ANY_USER,
    failure: 'Internal server error',
    cache: 'private',
    cacheControl: 'no-store, no-cache, must-revalidate, private',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },
  'POST /auth/google': { access: 'anyone', failure: { status: 401, body: { message: 'IdP login failed' } } },
  'GET /auth/google/start': { access: 'anyone', failure: 'Failed to start IdP OAuth' },
  'GET /auth/google/callback': { access: 'anyone', failure: 'OAuth callback failed' },

  'GET /blogs': {
    access: 'anyone',
    failure: 'Failed to fetch blogs',
    cache: 'public',
    cacheControl: 'public, s-maxage=120, stale-while-revalidate=300',
  },
  'GET /blogs/:id': {
    access: 'anyone',
    failure: 'Failed to fetch blog',
    cache: 'public',
    cacheControl: 'no-cache',
    unknown: 'Blog not found',
    given: async ({ app, people: { ADMIN } }) => ({
      id: await insert(app, 'blogs', { author_id: ADMIN.id, status: 'PUBLISHED' }),
    }),
  },
  'POST /blogs/submit': {
    access: CONTRIBUTORS,
    failure: 'Failed to submit blog',
    body: BLOG,
    fields: { title: rules.text(3), content: rules.text(20), imageUrl: rules.url },
    required: ['title', 'content'],
    gone: [500, 'Failed to submit blog'],
    nameless: [401, 'Unauthorized'],
  },
  'GET /blogs/me': {
    access: CONTRIBUTORS,
    failure: 'Failed to fetch your blogs',
    cache: 'private',
    gone: [200, { blogs: [] }],
    nameless: [401, 'Unauthorized'],
  },
  'GET /blogs/admin': { access: ADMINS, failure: 'Failed to fetch blogs', cache: 'private' },
  'POST /blogs': {
    access: ADMINS,
    failure: 'Failed to create blog',
    body: { ...BLOG, status: 'ARCHIVED' },
    fields: { title: rules.text(3), content: rules.text(20), imageUrl: rules.url, status: rules.status },
    required: ['title', 'content'],
    gone: [500, 'Failed to create blog'],
    nameless: [500, 'Failed to create blog'],
  },
  'PUT /blogs/:id': {
    access: ADMINS,
    failure: 'Failed to update blog',
    body: { ...BLOG, status: 'ARCHIVED' },
    given: blog,
    fields: { title: rules.text(3), content: rules.text(20), imageUrl: rules.url, status: rules.status },
  },
  'POST /blogs/:id/approve': {
    access: ADMINS, failure: 'Failed to approve blog', given: blog, stores: ['PUBLISHED'],
  },
  'POST /blogs/:id/archive': { access: ADMINS, failure: 'Failed to archive blog', given: blog },
  'DELETE /blogs/:id': { access: ADMINS, failure: 'Failed to delete blog', given: blog },

  'GET /users': { access: ADMINS, failure: 'Error fetching users', cache: 'private' },
  'GET /users/analytics': { access: ADMINS, failure: 'Error fetching platform analytics', cache: 'private' },
  'PUT /users/:id': {
    access: ADMINS,
    failure: 'Error updating user',
    body: { firstName: 'Bea' },
    given: both(inClub, user),
    fields: {
      firstName: rules.text(1),
      lastName: rules.text(1),
      email: rules.email,
      clubId: { takes: [null], refuses: rules.clubId.refuses.filter(value => value !== '' && value !== null) },
    },
    unknown: 'User not found',
  },
  'PUT /users/:userId/role': {
    access: ADMINS,
    failure: 'Error changing role',
    body: { newRole: 'CLUB_HEAD' },
    given: user,
    fields: { newRole: rules.role },
    required: ['newRole'],
  },
  'PUT /users/:userId/club': {
    access: ADMINS,
    failure: 'Error assigning user to club',
    body: { clubId: 'x' },
    given: both(inClub, user),
    fields: { clubId: rules.clubId },
    required: ['clubId'],
  },
  'DELETE /users/:userId/club': { access: ADMINS },
  'DELETE /users/:id': {
    access: ADMINS,
    failure: 'Error deleting user',
    given: user,
    unknown: 'User not found',
  },

  'GET /mentors': {
    access: 'anyone',
    failure: { status: 200, body: { mentors: [] } },
    cache: 'public',
    cacheControl: 'public, s-maxage=300, stale-while-revalidate=600',
  },
  'POST /mentors/:mentorId/like': {
    access: ANY_USER,
    failure: 'Error toggling mentor like',
    given: mentor,
    unknown: 'Mentor not found',
    empty: [404, 'Mentor not found'],
    gone: [500, 'Error toggling mentor like'],
    nameless: [401, 'Authentication required'],
  },
  'GET /mentors/liked': {
    access: ANY_USER,
    failure: 'Error fetching liked mentors',
    cache: 'private',
    gone: [200, { likedMentors: [] }],
    nameless: [401, 'Authentication required'],
  },
  'POST /mentors': {
    access: ADMINS,
    failure: 'Error creating mentor',
    body: MENTOR,
    given: inClub,
    fields: MENTOR_FIELDS,
    required: ['name', 'expertise', 'clubId'],
  },
  'PUT /mentors/:id': {
    access: ADMINS,
    failure: 'Error updating mentor',
    body: MENTOR,
    given: both(inClub, mentor),
    fields: MENTOR_FIELDS,
  },
  'DELETE /mentors/:id': { access: ADMINS, failure: 'Error deleting mentor', given: mentor },

  'GET /testimonials': {
    access: 'anyone', failure: 'Failed to fetch testimonials', cache: 'public', cacheControl: 'no-cache',
  },
  'POST /testimonials': {
    access: ADMINS,
    failure: 'Failed to create testimonial',
    body: TESTIMONIAL,
    fields: TESTIMONIAL_FIELDS,
    required: ['name', 'content', 'batchYear'],
  },
  'PUT /testimonials/:id': {
    access: ADMINS,
    failure: 'Failed to update testimonial',
    body: TESTIMONIAL,
    given: testimonial,
    fields: TESTIMONIAL_FIELDS,
  },
  'DELETE /testimonials/:id': { access: ADMINS, failure: 'Failed to delete testimonial', given: testimonial },

  'GET /clubs': { access: 'anyone', failure: 'Error fetching clubs', cache: 'public' },
  'POST /clubs': {
    access: ADMINS,
    failure: 'Error creating club',
    body: { name: 'Bridge', description: 'A club', clubHeadEmail: 'nobody@example.org' },
    given: async ({ app }) => ({ body: { clubHeadEmail: (await person(app)).email } }),
  },

  'GET /club-pages': {
    access: 'anyone', failure: 'Error fetching clubs', cache: 'public', cacheControl: 'no-cache',
  },
  'GET /club-pages/:id': {
    access: 'anyone',
    failure: 'Error fetching club',
    cache: 'public',
    cacheControl: 'no-cache',
    given: ownClub,
    unknown: 'Club not found',
  },
  'PUT /club-pages/:id': {
    access: ANY_USER,
    as: 'ADMIN',
    failure: 'Error updating club',
    body: { name: 'x', description: 'A club', imageUrl: 'https://example.org/a.png', joining: 'open' },
    given: async ({ club }) => ({ id: club, body: { name: club } }),
    fields: {
      name: rules.name,
      description: rules.visible(10_000),
      imageUrl: rules.nullable(rules.shortUrl),
      joining: rules.oneOf('open', 'request', 'closed'),
    },
    unknown: 'Club not found',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },

  'GET /club-pages/:id/members': {
    access: ANY_USER,
    as: 'CLUB_HEAD',
    failure: 'Error fetching members',
    cache: 'private',
    given: ownClub,
    unknown: 'Club not found',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },
  'PUT /club-pages/:id/members/:userId': {
    access: ANY_USER,
    as: 'CLUB_HEAD',
    failure: 'Error changing member',
    body: { state: 'member' },
    given: asked,
    unknown: 'Club not found',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },
  'GET /me/clubs': {
    access: ANY_USER,
    failure: 'Error fetching your clubs',
    cache: 'private',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },
  'PUT /me/clubs/:clubId': {
    access: ANY_USER,
    failure: 'Error joining club',
    body: { message: 'I play chess.', news: false },
    given: ownClub,
    fields: { message: rules.visible(1000), news: rules.yesOrNo },
    unknown: 'Club not found',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },
  'DELETE /me/clubs/:clubId': {
    access: ANY_USER,
    failure: 'Error leaving club',
    given: membership({}),
    unknown: 'You are not in this club',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },
  'PUT /me/clubs/:clubId/office': {
    access: ANY_USER,
    failure: 'Error changing office',
    body: { accept: true },
    given: membership({ offered: 'head' }),
    unknown: 'There is no offer',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },

  'GET /events': {
    access: 'anyone',
    failure: 'Error fetching events',
    cache: 'public',
    cacheControl: 'public, s-maxage=60, stale-while-revalidate=120',
  },
  'GET /events/mine': {
    access: ORGANIZERS,
    failure: 'Error fetching club events',
    cache: 'private',
    gone: [400, 'You are not associated with any club'],
  },
  'POST /events': {
    access: HEADS,
    failure: 'Error creating event',
    body: EVENT,
    fields: EVENT_FIELDS,
    required: ['title', 'description', 'data'],
    gone: [400, 'You must be a club head to create an event'],
  },
  'PUT /events/:id': {
    access: ORGANIZERS,
    failure: 'Error updating event',
    body: EVENT,
    given: both(inClub, event),
    fields: { ...EVENT_FIELDS, clubId: { ...rules.clubId, refuses: rules.clubId.refuses.slice(1) } },
    ownClub: 'Not allowed to modify this event',
    unknown: 'Event not found',
  },
  'DELETE /events/:id': {
    access: ORGANIZERS,
    failure: 'Error deleting event',
    given: event,
    ownClub: 'Not allowed to delete this event',
    unknown: 'Event not found',
  },
  'POST /events/:eventId/register': {
    access: ANY_USER,
    failure: 'Error registering for event',
    given: event,
    empty: [500, 'Error registering for event'],
    gone: [500, 'Error registering for event'],
  },
  'GET /events/registered': {
    access: ANY_USER,
    failure: 'Error fetching registered events',
    cache: 'private',
    gone: [200, { registrations: [] }],
  },
  'GET /events/:id/registrations': {
    access: ORGANIZERS,
    failure: 'Error fetching event registrations',
    cache: 'private',
    given: event,
    ownClub: 'Not allowed to view registrations for this event',
    unknown: 'Event not found',
    empty: [400, 'Event ID is required'],
  },

  'GET /agenda': { access: 'anyone', failure: 'Error fetching events', cache: 'public', cacheControl: 'no-cache' },
  'GET /agenda/:id': {
    access: 'anyone',
    failure: 'Error fetching event',
    cache: 'public',
    cacheControl: 'no-cache',
    given: event,
    unknown: 'Event not found',
  },
  'POST /agenda': {
    access: HEADS,
    failure: 'Error creating event',
    body: AGENDA_EVENT,
    fields: { ...AGENDA_FIELDS, ...DETAIL_FIELDS, endsAt: rules.endAfterDate },
    required: ['title', 'description', 'imageUrl', 'date'],
    gone: [400, 'You must be a club head to create an event'],
  },
  'PUT /agenda/:id': {
    access: ORGANIZERS,
    failure: 'Error updating event',
    body: { ...DETAILS, ...AGENDA_EVENT },
    given: event,
    fields: { ...AGENDA_FIELDS, ...DETAIL_FIELDS },
    ownClub: 'Not allowed to modify this event',
    unknown: 'Event not found',
  },
  'POST /agenda/:id/copies': {
    access: ORGANIZERS,
    failure: 'Error copying event',
    body: { dates: ['2030-01-08T00:00:00.000Z', '2030-01-15T00:00:00.000Z'] },
    given: event,
    fields: { dates: rules.dates, ends: rules.ends },
    required: ['dates'],
    ownClub: 'Not allowed to modify this event',
    unknown: 'Event not found',
  },
  'GET /agenda/:id/draw': {
    access: 'anyone',
    failure: 'Error fetching draw',
    cache: 'public',
    cacheControl: 'no-cache',
    given: withDraw,
    unknown: 'Event not found',
  },
  'GET /agenda/:id/seats': {
    access: ORGANIZERS,
    failure: 'Error fetching seats',
    cache: 'private',
    given: event,
    ownClub: 'Not allowed to view registrations for this event',
    unknown: 'Event not found',
  },
  'DELETE /agenda/:id/seats/:registrationId': {
    access: ORGANIZERS,
    failure: 'Error deleting registration',
    async given (world) {
      const { id } = await registered(world)
      const [{ registration }] = await world.app.sql<[{ registration: string }]>`
        SELECT id AS registration FROM event_registrations WHERE event_id = ${id}
      `
      return { id: `${id}/${registration}` }
    },
    ownClub: 'Not allowed to modify this event',
    unknown: 'Event not found',
  },
  'POST /agenda/:id/message': MESSAGE,
  'GET /me/seats': { access: ANY_USER, failure: 'Error fetching seats', cache: 'private', gone: [200, { seats: [] }] },
  'PUT /me/seats/:eventId': {
    access: ANY_USER,
    failure: 'Error changing seat',
    body: { coming: false },
    given: registered,
    fields: { coming: rules.yesOrNo },
    required: ['coming'],
    unknown: 'Registration not found',
    gone: [404, 'Registration not found'],
  },

  'GET /feeds/events.ics': {
    access: 'anyone', failure: 'Error fetching calendar', cache: 'public', cacheControl: 'public, no-cache',
  },
  'GET /feeds/clubs/:id.ics': {
    access: 'anyone',
    failure: 'Error fetching calendar',
    cache: 'public',
    cacheControl: 'public, no-cache',
    given: ownClub,
    unknown: 'Club not found',
    empty: [404, 'Club not found'],
  },
  'GET /feeds/me/:token.ics': {
    access: 'anyone', failure: 'Error fetching calendar', cache: 'public', cacheControl: 'private, no-cache',
  },
  'GET /feeds/blogs.atom': {
    access: 'anyone', failure: 'Error fetching feed', cache: 'public', cacheControl: 'public, no-cache',
  },

  'GET /live': { access: 'anyone' },

  'GET /exports/events/:id/registrations.csv': {
    access: ORGANIZERS,
    failure: 'Error fetching event registrations',
    given: event,
    ownClub: 'Not allowed to view registrations for this event',
    unknown: 'Event not found',
    empty: [400, 'Event ID is required'],
  },
  'GET /exports/users.csv': { access: ADMINS, failure: 'Error fetching users' },

  'DELETE /account/:id': { access: ADMINS, failure: 'Error erasing account', given: user, unknown: 'User not found' },
  'POST /account/password/forgot': {
    access: 'anyone',
    failure: 'Error sending the email',
    body: { email: 'nobody@example.org' },
    given: async ({ app }) => ({ body: { email: (await person(app)).email } }),
  },
  'POST /account/password/reset': {
    access: 'anyone',
    failure: 'Error setting the password',
    body: { token: 'x', password: 'battery staple' },
    given: link('password'),
  },
  'POST /account/email/verify': {
    access: 'anyone', failure: 'Error verifying the email', body: { token: 'x' }, given: link('email'),
  },
  'POST /account/unsubscribe/:token': {
    access: 'anyone',
    failure: 'Error turning off emails',
    async given (world) {
      const token = createSecretToken()
      const { id } = await user(world)
      await insert(world.app, 'emails', {
        template: 'event-reminder', bulk: true, user_id: id, data: {}, token_hash: hashSecretToken(token),
      })
      return { id: token }
    },
  },

  'PUT /me/password': {
    access: ANY_USER,
    failure: 'Error changing password',
    gone: [401, 'Unauthorized'],
    body: { currentPassword: PASSWORD, newPassword: 'battery staple' },
    given: ownPassword,
  },
  'PUT /me/profile': {
    access: ANY_USER,
    failure: 'Error changing profile',
    body: { firstName: 'Bea', lastName: 'Bell', avatar: null },
  },
  'POST /me/email': {
    access: ANY_USER,
    failure: 'Error sending the email',
    body: { email: 'another@example.org', currentPassword: PASSWORD },
    given: ownPassword,
  },
  'POST /me/email/verification': {
    access: ANY_USER,
    failure: 'Error sending the email',
    async given ({ app, people }) {
      await app.sql`UPDATE users SET email_verified_at = NULL WHERE id = ${people.STUDENT.id}`
      return {}
    },
  },
  'POST /me/calendar': { access: ANY_USER, failure: 'Error creating calendar', gone: [401, 'Unauthorized'] },
  'DELETE /me/calendar': {
    access: ANY_USER,
    failure: 'Error deleting calendar',
    gone: [404, 'Calendar not found'],
    async given ({ app, people }) {
      await app.sql`INSERT INTO calendar_tokens VALUES (${people.STUDENT.id}, 'x') ON CONFLICT DO NOTHING`
      return {}
    },
  },
  'DELETE /me/tokens': { access: ANY_USER, failure: 'Error signing out', gone: [401, 'Unauthorized'] },
  'POST /me/token': {
    access: ANY_USER,
    failure: 'Error renewing the token',
    gone: [401, 'Unauthorized'],
    nameless: [401, 'Unauthorized'],
  },
  'GET /me/account': {
    access: ANY_USER, failure: 'Error fetching account', gone: [401, 'Unauthorized'], cache: 'private',
  },
  'GET /me/notifications': {
    access: ANY_USER, failure: 'Error fetching notifications', gone: [401, 'Unauthorized'], cache: 'private',
  },
  'PUT /me/notifications': {
    access: ANY_USER,
    failure: 'Error changing notifications',
    gone: [401, 'Unauthorized'],
    body: { notifications: { registration: false } },
  },
  'POST /me/events/:id/message': MESSAGE,
  'GET /me/export': { access: ANY_USER, failure: 'Error exporting data', gone: [401, 'Unauthorized'] },

  'GET /pictures/:id': {
    access: 'anyone',
    failure: 'Error fetching picture',
    cache: 'public',
    cacheControl: 'public, max-age=31536000, immutable',
    given: picture,
    unknown: 'Picture not found',
    empty: [404, 'Picture not found'],
  },
  'GET /me/pictures': { access: ANY_USER, failure: 'Error fetching pictures', cache: 'private' },
  'POST /me/pictures': { access: ANY_USER, failure: 'Error uploading picture', body: PNG, type: 'image/png' },
  'DELETE /me/pictures/:id': {
    access: ANY_USER,
    failure: 'Error deleting picture',
    given: picture,
    unknown: 'Picture not found',
    empty: [404, 'Picture not found'],
  },

  // This operation comes last, because it deletes the user who sends the others.
  'DELETE /me': {
    access: ANY_USER,
    failure: 'Error deleting account',
    body: { currentPassword: PASSWORD },
    given: ownPassword,
    gone: [401, 'Unauthorized'],
    // The published posts of the user get a new author.
    stores: ['PUBLISHED'],
  },
}
