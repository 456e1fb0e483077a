// Values that the schemas do not describe, so that more requests succeed.
import { type TSchema, Type } from '@sinclair/typebox'
import fc, { type Arbitrary } from 'fast-check'

import { Enum, Office, TextInput } from '#lib/values/schemas.js'
import { LISTS } from '#routes/live/schemas.js'
import { PNG } from '../fixtures.ts'
import type { Operation, Schema } from './operations.ts'
import type { Known } from './values.ts'
import { CALENDAR_TOKEN, LINK_TOKENS, PASSWORD, type Fixture } from './fixture.ts'

/** Longer than a common password, which a schema cannot rule out. */
const UncommonPassword = () => TextInput({ minLength: 21 })

/** Bodies that the schema of an operation does not describe, or not completely. */
const BODIES: Record<string, TSchema> = {
  // Either of both
  'PUT /club-pages/:id/members/:userId': Type.Union([
    Type.Object({ state: Enum(['member']) }),
    Type.Object({
      state: Enum(['refused']), reason: Type.Optional(Type.String({ format: 'visible', maxLength: 1000 })),
    }),
    Type.Object({ office: Office }),
  ]),
  'POST /account/password/reset': Type.Object({ token: TextInput(), password: UncommonPassword() }),
  'PUT /me/password': Type.Object({ currentPassword: TextInput(), newPassword: UncommonPassword() }),
}

const dates = fc.oneof(
  fc.date({ noInvalidDate: true, min: new Date('0001-01-02'), max: new Date('9999-12-30') })
    .map(date => date.toISOString()),
  fc.constantFrom('2030-01-31T09:30:00Z', '2030-01-31', 'Jan 31 2030', '2030-01-31T09:30:00+14:00', '0', 'soon',
    '+012030-01-31T09:30:00Z', '-000001-01-31T09:30:00Z', '9999-12-31T23:59:59-14:00', '0001-01-01T00:00:00+14:00'))

const numbers = fc.oneof(
  fc.integer({ min: 1, max: 20 }).map(String),
  fc.constantFrom('', '0', '-1', '-0', '5x', ' 7', '0x10', '1e3', '2.9', 'x', 'NaN', 'Infinity', '9007199254740993',
    '9223372036854775807', '9223372036854775808', '99999999999999999999999', '9'.repeat(400)))

/** The tables whose ids are in paths that do not name them. */
const TABLES_OF_PATHS: Record<string, string> = { agenda: 'events', seats: 'events', 'club-pages': 'clubs' }

/** Lists for `GET /live`, a few of which it refuses. */
const lists = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.constantFrom(...LISTS, '/agenda?limit=3', '/events?page=2&limit=3', '/events?limit=-1'),
  },
  { weight: 1, arbitrary: fc.oneof(fc.constantFrom('/agenda?cursor=x', '/users', ''), fc.webPath()) })

export class Hints {
  readonly #fixture: Fixture
  readonly #idTokens: string[]

  /** `idTokens` were issued by the identity provider of the service. */
  constructor (fixture: Fixture, idTokens: string[]) {
    this.#fixture = fixture
    this.#idTokens = idTokens
  }

  /** Whether a valid request hashes a password: most bodies of such an operation should be invalid, to save time. */
  isSlow ({ body }: Operation) {
    return Object.keys(body?.properties ?? {}).some(name => /password$/i.test(name))
  }

  body ({ name, body }: Operation): Schema | undefined {
    return BODIES[name] as Schema | undefined ?? body
  }

  /** The file that an operation takes, sometimes with a wrong byte; `undefined` for other operations. */
  file ({ name }: Operation): Arbitrary<Buffer> | undefined {
    if (name !== 'POST /me/pictures') return undefined
    const damaged = fc.tuple(fc.nat(PNG.length - 1), fc.nat(255)).map(([place, byte]) => {
      const file = Buffer.from(PNG)
      file[place] = byte
      return file
    })
    return fc.oneof(fc.constant(PNG), damaged)
  }

  /** Known values for fields of bodies and query strings. */
  readonly known: Known = name => {
    const { ids, emails } = this.#fixture
    switch (name) {
      case 'email':
      case 'clubHeadEmail': return fc.constantFrom(...emails)
      case 'password':
      case 'currentPassword': return fc.constant(PASSWORD)
      case 'token': return fc.constantFrom(...LINK_TOKENS.password, ...LINK_TOKENS.email)
      case 'avatar': return fc.constantFrom(...ids.pictures!)
      case 'idToken': return fc.constantFrom(...this.#idTokens)
      case 'data': return dates
      case 'endsAt': return fc.constantFrom('2030-12-31T09:30:00Z', '9999-12-31T23:59:59.999Z')
      case 'page':
      case 'limit': return numbers
      default: {
        // A field such as clubId references clubs.
        const rows = ids[name.replace(/Id$/, 's')]
        return name.endsWith('Id') && rows ? fc.constantFrom(...rows) : undefined
      }
    }
  }

  /** Values for the parameters of a path: ids from the table that the parameter or the path names. */
  params ({ path }: Operation): Arbitrary<Record<string, string>> {
    const { ids, registrations } = this.#fixture
    if (path.includes(':registrationId')) {
      return fc.constantFrom(...registrations).map(row => ({ id: row.event_id, registrationId: row.id }))
    }
    const tables = path.split('/').flatMap(part => TABLES_OF_PATHS[part] ?? (part in ids ? [part] : []))
    const known = tables.length > 0 ? ids[tables[0]!]! : Object.values(ids).flat()
    const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
    return fc.record(Object.fromEntries(names.map(name => {
      if (name === 'token') return [name, fc.constant(CALENDAR_TOKEN)]
      return [name, fc.constantFrom(...name === 'userId' ? ids.users! : known)]
    })))
  }

  /** Query parameters and headers that belong together. */
  extras ({ name }: Operation): Arbitrary<{ query: [string, string][], headers: [string, string][] }> {
    if (name === 'GET /auth/google/start') {
      const query = fc.option(fc.webPath(), { nil: undefined })
        .map(path => path === undefined ? [] : [['redirect', path] as [string, string]])
      return fc.record({ query, headers: fc.constant([]) })
    }
    if (name === 'GET /auth/google/callback') {
      return fc.tuple(fc.uuid(), fc.record({ n: fc.uuid(), r: fc.webPath() })).map(([code, state]) => ({
        query: [['code', code], ['state', Buffer.from(JSON.stringify(state)).toString('base64url')]],
        headers: [['Cookie', `oauth_state_nonce=${state.n}`]],
      }))
    }
    if (name === 'GET /live') {
      const query = fc.array(lists.map((list): [string, string] => ['list', list]), { minLength: 1, maxLength: 9 })
      const id = fc.stringMatching(/^[\w-]{0,30}(,[\w-]{0,30}){0,3}$/)
        .map((id): [string, string] => ['Last-Event-ID', id])
      return fc.record({ query, headers: fc.array(id, { maxLength: 1 }) })
    }
    return fc.constant({ query: [], headers: [] })
  }
}
