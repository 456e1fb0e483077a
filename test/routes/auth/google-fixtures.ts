import type { LightMyRequestResponse } from 'fastify'
import type { Test } from 'tap'

import { createLogger } from '#lib/http/logger.js'
import { decodeState, encodeState } from '#lib/auth/oauth-state.js'
import { build, createDatabase, inject } from '../../helper.ts'
import { type Account, CLIENT, newAccount, startFakeProvider, startProvider } from '../../provider.ts'

export const [FIRST, SECOND] = ['https://app.example.org', 'http://second.example.org:8080']
export const FRONTEND_URL = `${FIRST},${SECOND}`

export type Service = Awaited<ReturnType<typeof build>>

/** Asserts an error for a browser, in plain text. */
export function plain (
  t: Test, { response }: { response: LightMyRequestResponse }, status: number, text: string, what = text
) {
  t.strictSame([response.statusCode, response.headers['content-type'], response.body],
    [status, 'text/plain; charset=utf-8', text], what)
  t.equal(response.headers.location, undefined)
  t.equal(response.headers['set-cookie'], undefined)
}

/** Starts a provider and one that can be told its responses, each with a service of the same database. */
export async function setUp (t: Test) {
  /** The log of all services in this file, and the secrets that must not be in it. */
  let log = ''
  const secrets = new Set<string>([CLIENT.IDP_CLIENT_SECRET, encodeURIComponent(CLIENT.IDP_CLIENT_SECRET)])

  const DATABASE_URL = await createDatabase()

  /** Builds the service for a provider and two frontends. */
  const service = (t: Test, variables: NodeJS.Dict<string> = {}) =>
    build(t, { DATABASE_URL, FRONTEND_URL, ...CLIENT, ...variables },
      createLogger('trace', { write (line) { log += line } }))

  const provider = await startProvider(t)
  const app = await service(t, { IDP_ISSUER: provider.issuer })

  const fake = await startFakeProvider(t)
  const fakeApp = await service(t, { IDP_ISSUER: fake.issuer })

  /** Adds an account to the provider. */
  function add (claims: Partial<Account> = {}) {
    const account = newAccount(claims)
    provider.accounts.push(account)
    return account
  }

  /** Replaces responses of the fake provider for one test. */
  function respondWith (t: Test, responses: typeof fake.responses) {
    const before = { ...fake.responses }
    Object.assign(fake.responses, responses)
    t.teardown(() => Object.assign(fake.responses, before))
  }

  /** Registers secrets. Skips short texts, which may be in the log by coincidence. */
  function addSecrets (...texts: (string | null | undefined)[]) {
    for (const text of texts) if (text && text.length > 9) secrets.add(text)
  }

  function postToken (idToken: unknown, to: Service = app) {
    if (typeof idToken === 'string') addSecrets(...idToken.split('.'))
    return inject(to, 'POST', '/auth/google', { idToken })
  }

  async function start (query = '', headers: Record<string, string> = {}, to: Service = app) {
    const response = await inject(to, 'GET', `/auth/google/start${query}`, undefined, headers)
    const location = new URL(response.headers.location ?? 'none:')
    const state = location.searchParams.get('state') ?? ''
    const cookie = String(response.headers['set-cookie'])
    if (state) addSecrets(state, decodeState(state).n)
    return { response, location, state, cookie }
  }

  /** Sends the request that the provider redirects to. */
  async function callback (query: Record<string, string> | string, cookie?: string, to: Service = app) {
    const search = new URLSearchParams(query)
    const headers = cookie === undefined ? {} : { cookie: `oauth_state_nonce=${cookie}` }
    addSecrets(search.get('code'), search.get('state'), cookie)
    const response =
      await inject(to, 'GET', `/auth/google/callback?${search}`, undefined, headers as { cookie: string })
    const location = response.headers.location ? new URL(response.headers.location) : undefined
    const token = location?.searchParams.get('token')
    addSecrets(token)
    return { response, location, token }
  }

  /** Signs in through the redirects of a browser. Returns the response of the callback. */
  async function signIn (account: Account, query = '', headers: Record<string, string> = {}) {
    const { location, cookie } = await start(query, headers)
    const back = await provider.signIn(location, account)
    return callback(back.search.slice(1), cookie.split(/[=;]/)[1])
  }

  /** Sends a callback with a forged state to the service that uses the fake provider, which accepts any code. */
  const forged = (state: object = { r: '/' }) =>
    callback({ code: 'a code of the tests', state: encodeState({ n: 'nonce', r: '', ...state }) }, 'nonce', fakeApp)

  const stored = async (email: unknown, of: Service = app) =>
    (await of.sql`SELECT * FROM users WHERE email = ${String(email)}`)[0]!

  const count = async (email: unknown, of: Service = app) =>
    (await of.sql`SELECT id FROM users WHERE email = ${String(email)}`).length

  async function me (token: string, of: Service = app) {
    const response = await inject(of, 'GET', '/auth/me', undefined, { authorization: `Bearer ${token}` })
    return response.json().user
  }

  /** Must be the last test of a file. */
  function testLog () {
    t.test('The log has the failures, but no codes, tokens, states or client secrets', async t => {
      t.match(log, /"msg":"(Unexpected error|Request refused)"/)
      t.match(log, '"path":"/auth/google')
      addSecrets(...fake.received.map(({ authorization }) => authorization?.replace(/^\w+ /, '')))
      t.ok(secrets.size > 20)
      t.strictSame([...secrets].filter(secret => log.includes(secret)), [])
    })
  }

  return {
    service,
    provider,
    app,
    fake,
    fakeApp,
    add,
    respondWith,
    addSecrets,
    postToken,
    start,
    callback,
    signIn,
    forged,
    stored,
    count,
    me,
    testLog,
  }
}
