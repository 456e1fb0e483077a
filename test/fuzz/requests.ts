// Requests for an operation: valid, nearly valid (one change), and wild ones (several changes).
import { parse as parseQuery, type ParsedUrlQuery } from 'node:querystring'

import fc, { type Arbitrary } from 'fast-check'

import { ROLES } from '#lib/values/roles.js'
import type { Hints } from './hints.ts'
import type { Operation } from './operations.ts'
import { validValues, anyJson, anyText, invalidJson, toObject } from './values.ts'
import type { Bearer, Fixture } from './fixture.ts'

type Pair = [name: string, value: string]

/** The parts of a request. Names and values are raw. */
interface Draft {
  method: string
  params: Record<string, string>
  query: Pair[]
  bearer: Bearer | undefined
  headers: Pair[]
  contentType: string | undefined
  body: Buffer | Pair[] | undefined
  isChunked: boolean
}

/** A request, with details for the checks. */
export interface Message {
  kind: 'valid' | 'nearly valid' | 'wild'
  method: string
  /** The path with the query. */
  target: string
  headers: Pair[]
  payload: Buffer | undefined
  isConditional: boolean
  /** The operation of the path, usually the fuzzed operation; `undefined` for an unknown path. */
  asked: Operation | undefined
  params: Record<string, string>
  query: ParsedUrlQuery
  /** The body as the service parses it; `undefined` when it is not JSON. */
  json: unknown
  bearer: Bearer | undefined
}

interface Context {
  operation: Operation
  fixture: Fixture
  hints: Hints
  issueToken (bearer: Bearer): string
  operations: Operation[]
}

/** Generates requests for one operation. */
export function requestsFor (context: Context): Arbitrary<Message> {
  const isSlow = context.hints.isSlow(context.operation)
  const valid = validDraft(context)
  const nearly = fc.tuple(valid, change(context)).map(([draft, change]) => change(draft))
  const wild = fc.tuple(valid, fc.array(fc.oneof(change(context), wildChange), { minLength: 2, maxLength: 6 }))
    .map(([draft, changes]) => changes.reduce((draft, change) => change(draft), draft))
  const messages = (kind: Message['kind'], drafts: Arbitrary<Draft>) =>
    drafts.map(draft => toMessage(context, kind, draft))
  return fc.oneof(
    { weight: isSlow ? 2 : 5, arbitrary: messages('valid', valid) },
    { weight: isSlow ? 4 : 3, arbitrary: messages('nearly valid', nearly) },
    { weight: isSlow ? 4 : 3, arbitrary: messages('wild', wild) })
}

function validDraft ({ operation, fixture, hints }: Context): Arbitrary<Draft> {
  const { method, roles, query } = operation
  const allowed = fixture.people.filter(({ role }) => !roles?.length || roles.includes(role))
  const schema = hints.body(operation)
  const file = hints.file(operation)
  return fc.record({
    params: hints.params(operation),
    query: query ? validValues(query, hints.known).map(toPairs) : fc.constant([]),
    bearer: roles ? fc.constantFrom(...allowed) : fc.option(fc.constantFrom(...fixture.people), { nil: undefined }),
    body: file ?? (schema ? validValues(schema, hints.known).map(toFields) : fc.constant(undefined)),
    // Clients may send the content type without a body.
    hasJsonType: schema || method === 'GET' ? fc.constant(schema !== undefined) : fc.boolean(),
    extras: hints.extras(operation),
  }).map(({ hasJsonType, extras, query, ...parts }) => ({
    method,
    ...parts,
    query: [...query, ...extras.query.map(pair => pair.map(encodeURIComponent) as Pair)],
    headers: extras.headers,
    contentType: file ? 'image/png' : hasJsonType ? 'application/json' : undefined,
    isChunked: false,
  }))
}

const parameters = (path: string) => [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)

const toPairs = (fields: unknown) =>
  Object.entries(fields as object).flatMap(([name, value]) =>
    [value].flat().map((one): Pair => [name, encode(String(one))]))

const toFields = (fields: unknown) =>
  Object.entries(fields as object).map(([name, value]): Pair => [name, JSON.stringify(value)])

/** `encodeURIComponent` for any text: a lone surrogate has no encoding. */
const encode = (text: string) => encodeURIComponent(String(Buffer.from(text)))

type Change = (draft: Draft) => Draft

const anyId = fc.oneof(
  fc.uuid(),
  fc.uuid().map(id => id.toUpperCase()),
  anyText.map(encode),
  fc.constantFrom('', '.', '..', '%2e%2e%2f', '%2F', '%00', '%25', '%zz', '%', '%c3%28', '%ed%a0%80', '%u0041', '+',
    ';a=b', '~', '*', ':id', 'x'.repeat(5000), '00000000-0000-0000-0000-000000000000', '\x7f', 'é', '<', '"', '\\', '|',
    '%0d%0a'))

const anyQuery = fc.oneof(
  anyText.map(encode),
  fc.constantFrom('', '%', '%zz', '%c3%28', '%00', '+', 'a=b=c', '[]', '%5B%5D', 'x'.repeat(5000), 'é', ';',
    '%ed%a0%80'))

const METHODS = [
  'GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'SEARCH', 'QUERY', 'M-SEARCH',
]

const CONTENT_TYPES = [
  'application/json; charset=utf-8', 'APPLICATION/JSON', 'application/json;charset=utf-16', 'application/json;',
  'application/json; charset="', 'application/json, text/plain', 'application/vnd.api+json', 'application/jsonp',
  'text/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain', 'text/xml', '*/*',
  'json', '/', ' ', 'application/json; __proto__=1', 'a'.repeat(3000), 'application/octet-stream', 'application/json\t',
  'é/é',
]

/** Valid headers that may confuse some layer. */
const HEADERS: Pair[] = [
  ['Expect', '100-continue'], ['Expect', 'something else'], ['Connection', 'close'], ['Connection', 'keep-alive, x'],
  ['Connection', 'upgrade'], ['Upgrade', 'websocket'], ['Upgrade', 'h2c'], ['Keep-Alive', 'timeout=1'], ['TE', 'x'],
  ['Content-Encoding', 'gzip'], ['Content-Encoding', 'br, identity'], ['Accept', 'text/html'], ['Accept', ''],
  ['Accept-Encoding', 'gzip'], ['Accept-Encoding', 'br;q=0.5, *;q=0'], ['Accept-Encoding', ',;q=,'],
  ['Accept-Encoding', 'identity;q=0'], ['Accept-Encoding', `${'gzip,'.repeat(1000)}br`], ['Range', 'bytes=0-1'],
  ['If-None-Match', '*'], ['If-None-Match', '"x", W/"y'], ['If-Modified-Since', 'yesterday'], ['If-Match', '"x"'],
  ['Origin', 'null'], ['Origin', 'https://app.example.org'], ['Origin', 'https://evil.example'], ['Origin', ''],
  ['Access-Control-Request-Method', 'PUT'], ['Access-Control-Request-Headers', 'x, y'], ['Referer', 'no address'],
  ['Cookie', 'a=b; a=c'], ['Cookie', '__proto__=x; constructor=%zz'], ['Cookie', ';=;,"'],
  ['Cookie', 'oauth_state_nonce=%'], ['X-Forwarded-For', '1.2.3.4, ::1'], ['X-Forwarded-For', 'x'.repeat(200)],
  ['X-Forwarded-Host', 'evil.example'], ['X-Forwarded-Proto', 'gopher'], ['Forwarded', 'for="_x"'],
  ['X-HTTP-Method-Override', 'DELETE'],
  ['X-Original-URL', '/users'], ['Content-Language', 'é'], ['Accept-Version', '99'], ['__proto__', 'x'],
  ['Constructor', 'x'], ['X-Long', 'x'.repeat(8000)], ['Date', 'never'],
  ['User-Agent', '\'"><$' + '{jndi:ldap://x}'],
]

/** One invalid or unusual change to a valid request. */
function change ({ operation, fixture, hints, issueToken }: Context): Arbitrary<Change> {
  const schema = hints.body(operation)
  const names = Object.keys(schema?.properties ?? {})
  const queryNames = Object.keys(operation.query?.properties ?? {})
  const bearers: Arbitrary<Change> = fc.oneof(
    fc.constantFrom(undefined, ...fixture.people, ...fixture.strangers)
      .map((bearer): Change => draft => ({ ...draft, bearer })),
    authorization(fixture, issueToken).map((value): Change => draft =>
      ({ ...draft, bearer: undefined, headers: [...draft.headers, ['Authorization', value]] })))
  const contentTypes: Arbitrary<Change> = fc.constantFrom(undefined, ...CONTENT_TYPES)
    .map(contentType => draft => ({ ...draft, contentType }))
  const headers: Arbitrary<Change> = fc.oneof(fc.constantFrom(...HEADERS), anyHeader)
    .map(header => draft => ({ ...draft, headers: [...draft.headers, header] }))
  const queryName = fc.constantFrom('x', '__proto__', '', ...queryNames)
  const queries: Arbitrary<Change> = fc.tuple(queryName, anyQuery, fc.boolean())
    .map(([name, value, isMore]) => draft =>
      ({ ...draft, query: [...draft.query.filter(([other]) => isMore || other !== name), [name, value]] }))
  const chunked: Arbitrary<Change> = fc.constant(draft => ({ ...draft, isChunked: true }))

  const bodies: Arbitrary<Change> = fc.oneof(
    fieldChange(names),
    anyJson.map((text): Change => draft => ({ ...draft, contentType: 'application/json', body: Buffer.from(text) })),
    fc.constant<Change>(draft => ({ ...draft, body: undefined })))
  const ids: Arbitrary<Change> = anyId.map(id => draft =>
    ({ ...draft, params: Object.fromEntries(Object.keys(draft.params).map(name => [name, id])) }))
  return fc.oneof(
    { weight: names.length > 0 ? 8 : 1, arbitrary: bodies },
    { weight: operation.path.includes(':') ? 3 : 0, arbitrary: ids },
    { weight: queryNames.length > 0 ? 6 : 1, arbitrary: queries },
    { weight: 2, arbitrary: bearers },
    { weight: 1, arbitrary: contentTypes },
    { weight: 1, arbitrary: headers },
    { weight: 1, arbitrary: chunked })
}

/** Replaces, removes, duplicates or adds a field of the body. */
function fieldChange (names: string[]): Arbitrary<Change> {
  const without = (body: Draft['body'], name: string | undefined) =>
    Array.isArray(body) ? body.filter(([other]) => other !== name) : []
  const withField = (name: string, json: string): Change => draft => ({
    ...draft, contentType: 'application/json', body: [...without(draft.body, name), [name, json]],
  })
  const name = fc.constantFrom(...names, 'id', 'role', 'authorId', 'clubId', 'status', '__proto__', 'constructor')
  return fc.oneof(
    { weight: 4, arbitrary: fc.tuple(name, anyJson).map(([name, json]) => withField(name, json)) },
    { weight: 1, arbitrary: name.map((name): Change => draft => ({ ...draft, body: without(draft.body, name) })) },
    {
      weight: 1,
      arbitrary: fc.tuple(name, anyJson).map(([name, json]): Change => draft =>
        ({ ...draft, contentType: 'application/json', body: [...without(draft.body, undefined), [name, json]] })),
    })
}

/** Values of Authorization; a few are valid. */
function authorization ({ people }: Fixture, issueToken: Context['issueToken']) {
  const tokens = ROLES.map(role => issueToken(people.find(person => person.role === role)!))
  return fc.oneof(
    fc.constantFrom(...tokens).chain(token => fc.constantFrom(
      token, `bearer ${token}`, `Bearer  ${token}`, `Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token} x`, `Bearer ${token.split('.').slice(0, 2).join('.')}.`, `Bearer ${token}.${token}`,
      `Basic ${token}`)),
    fc.constantFrom('', 'Bearer', 'Bearer ', 'Bearer null', 'Bearer ..', 'Bearer e30.e30.', 'Bearer \xff',
      `Bearer ${'x'.repeat(8000)}`, `Bearer ${'.'.repeat(4000)}`, 'Bearer eyJhbGciOiJub25lIn0.e30.'))
}

/** Any character that a header value may contain. */
const headerCharacter = fc.integer({ min: 0x20, max: 0xff }).filter(code => code !== 0x7f)
  .map(code => String.fromCharCode(code))

const anyHeader = fc.tuple(
  fc.stringMatching(/^X-[!#$%&'*+.^_`|~0-9A-Za-z-]{0,20}$/),
  fc.string({ unit: headerCharacter }).map(text => text.trim()))

const wildBody = fc.oneof(
  invalidJson.map(text => Buffer.from(text)),
  fc.uint8Array({ maxLength: 60 }).map(bytes => Buffer.from(bytes)),
  // Around MAX_BODY_BYTES.
  fc.constantFrom(60_000, 70_000, 300_000).map(size => Buffer.from(JSON.stringify('x'.repeat(size)))))

/** Changes that nearly valid requests never get. */
const wildChange: Arbitrary<Change> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.tuple(wildBody, fc.constantFrom('application/json', ...CONTENT_TYPES))
      .map(([body, contentType]): Change => draft => ({ ...draft, body, contentType })),
  },
  { weight: 1, arbitrary: fc.constantFrom(...METHODS).map((method): Change => draft => ({ ...draft, method })) })

function toMessage ({ operation, operations, issueToken }: Context, kind: Message['kind'], draft: Draft): Message {
  const { method, params, query, bearer, contentType, isChunked, body: given } = draft
  const path = operation.path.replace(/:(\w+)/g, (_, name) => params[name]!)
  const queryString = query.map(([name, value]) => `${encode(name)}=${value}`).join('&')
  const target = (queryString ? `${path}?${queryString}` : path).replace(/[^!-~]/g, encode)
  const body = given && (Array.isArray(given) ? Buffer.from(toObject(given)) : given)
  const headers: Pair[] = [...draft.headers]
  if (bearer) headers.push(['Authorization', `Bearer ${issueToken(bearer)}`])
  if (contentType !== undefined) headers.push(['Content-Type', contentType])
  if (body) headers.push(isChunked ? ['Transfer-Encoding', 'chunked'] : ['Content-Length', String(body.length)])
  return {
    kind,
    method,
    target,
    headers,
    payload: body,
    isConditional: headers.some(([name]) => name === 'If-None-Match'),
    ...route(operations, method, target.replace(/[?#].*/, '')),
    query: parseQuery(queryString),
    json: body && parseJson(String(body)),
    bearer,
  }
}

/** Finds the operation as the router does: static segments win over parameters. */
function route (operations: Operation[], method: string, path: string): Pick<Message, 'asked' | 'params'> {
  const found = operations
    .filter(operation => operation.method === method.replace('HEAD', 'GET'))
    .map(asked => ({ asked, names: parameters(asked.path), ids: toPattern(asked.path).exec(path)?.slice(1) }))
    .filter(({ ids }) => ids)
    .sort((one, other) => one.names.length - other.names.length)[0]
  if (!found) return { asked: undefined, params: {} }
  const { asked, names, ids } = found
  return { asked, params: Object.fromEntries(names.map((name, n) => [name, decode(ids![n]!)])) }
}

const toPattern = (path: string) =>
  new RegExp(`^${path.replaceAll('.', '\\.').replace(/:\w+/g, '([^/]*)')}/?$`)

function decode (text: string) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function parseJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
