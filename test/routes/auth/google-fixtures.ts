import t, { type Test } from 'tap'

import { createLogger } from '#lib/http/logger.js'
import { decodeState, encodeState } from '#lib/auth/oauth-state.js'
import { build, createDatabase, inject } from '../../helper.ts'
import { type Account, CLIENT, newAccount, startFakeProvider, startProvider } from '../../provider.ts'

export const [FIRST, SECOND] = ['https://app.example.org', 'http://second.example.org:8080']
export const FRONTEND_URL = `${FIRST},${SECOND}`

/** Every line that the services of this file log, and what must be in none of them. */
let log = ''
const secrets = new Set<string>([CLIENT.IDP_CLIENT_SECRET, encodeURIComponent(CLIENT.IDP_CLIENT_SECRET)])

const DATABASE_URL = await createDatabase(t)

/** The service with this provider and two frontends. */
export const service = (t: Test, variables: NodeJS.Dict<string> = {}) =>
  build(t, { DATABASE_URL, FRONTEND_URL, ...CLIENT, ...variables },
    createLogger('trace', { write (line) { log += line } }))

export type Service = Awaited<ReturnType<typeof build>>

export const provider = await startProvider(t)
export const app = await service(t, { IDP_ISSUER: provider.issuer })

export const fake = await startFakeProvider(t)
export const fakeApp = await service(t, { IDP_ISSUER: fake.issuer })

/** A person whom the provider knows. */
export function add (claims: Partial<Account> = {}) {
  const account = newAccount(claims)
  provider.accounts.push(account)
  return account
}

/** Answers of the fake provider while a test runs. */
export function respondWith (t: Test, answers: typeof fake.responses) {
  const before = { ...fake.responses }
  Object.assign(fake.responses, answers)
  t.teardown(() => Object.assign(fake.responses, before))
}

/** Notes what must not be in the log; short texts of the tests may well be there by accident. */
export function addSecrets (...texts: (string | null | undefined)[]) {
  for (const text of texts) if (text && text.length > 9) secrets.add(text)
}

export function postToken (idToken: unknown, to: Service = app) {
  if (typeof idToken === 'string') addSecrets(...idToken.split('.'))
  return inject(to, 'POST', '/auth/google', { idToken })
}

export async function start (query = '', headers: Record<string, string> = {}, to: Service = app) {
  const response = await inject(to, 'GET', `/auth/google/start${query}`, undefined, headers)
  const location = new URL(response.headers.location ?? 'none:')
  const state = location.searchParams.get('state') ?? ''
  const cookie = String(response.headers['set-cookie'])
  if (state) addSecrets(state, decodeState(state).n)
  return { response, location, state, cookie }
}

/** Comes back from the provider. */
export async function callback (query: Record<string, string> | string, cookie?: string, to: Service = app) {
  const search = new URLSearchParams(query)
  const headers = cookie === undefined ? {} : { cookie: `oauth_state_nonce=${cookie}` }
  addSecrets(search.get('code'), search.get('state'), cookie)
  const response = await inject(to, 'GET', `/auth/google/callback?${search}`, undefined, headers as { cookie: string })
  const location = response.headers.location ? new URL(response.headers.location) : undefined
  const token = location?.searchParams.get('token')
  addSecrets(token)
  return { response, location, token }
}

/** A sign-in through the browser, all the way: what the provider sends it back with, and what it gets for that. */
export async function signIn (account: Account, query = '', headers: Record<string, string> = {}) {
  const { location, cookie } = await start(query, headers)
  const back = await provider.signIn(location, account)
  return callback(back.search.slice(1), cookie.split(/[=;]/)[1])
}

/** Comes back to the service of the fake provider, which takes any code, with this state. */
export const forged = (state: object, nonce = 'nonce') =>
  callback({ code: 'a code of the tests', state: encodeState(state as { n: string, r: string }) }, nonce, fakeApp)

export const stored = async (email: unknown, of: Service = app) =>
  (await of.sql`SELECT * FROM users WHERE email = ${String(email)}`)[0]!

export const count = async (email: unknown, of: Service = app) =>
  (await of.sql`SELECT id FROM users WHERE email = ${String(email)}`).length

export async function me (token: string, of: Service = app) {
  const response = await inject(of, 'GET', '/auth/me', undefined, { authorization: `Bearer ${token}` })
  return response.json().user
}

/** Checks that this is an error for a person in a browser: plain text. */
export function plain (
  t: Test, { response }: Awaited<ReturnType<typeof callback>>, status: number, text: string, what = text
) {
  t.strictSame([response.statusCode, response.headers['content-type'], response.body],
    [status, 'text/plain; charset=utf-8', text], what)
  t.equal(response.headers.location, undefined)
  t.equal(response.headers['set-cookie'], undefined)
}

/** All but `true` and `"true"`. */
export const UNVERIFIED = [undefined, null, false, 'false', 'False', 0, '0', 'no', '', [], {}]

/** The last test of each file. */
export function testLog () {
  t.test('The log of all this has failures in it, and neither codes, tokens, the client secret nor states', async t => {
    t.match(log, '"msg":"Unexpected error"')
    t.match(log, '"path":"/auth/google')
    addSecrets(...fake.received.map(({ authorization }) => authorization?.replace(/^\w+ /, '')))
    t.ok(secrets.size > 20)
    t.strictSame([...secrets].filter(secret => log.includes(secret)), [])
  })
}
