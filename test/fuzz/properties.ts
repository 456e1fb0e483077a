// Properties of every response, whatever the request was.
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'

import type { Response } from './send.ts'
import { EXPECTED_500S } from './failures.ts'
import type { Operation, Schema } from './operations.ts'
import type { Message } from './requests.ts'
import type { Fixture } from './fixture.ts'

const ajv = new Ajv({ strict: false })
addFormats.default(ajv)

/** Sent before an operation is found or its handler runs, as JSON `{message}`. */
const GENERAL = [400, 404, 408, 413, 415, 431]

/** Validation errors of bodies that the schema accepts: they depend on what is stored, or on a different field. */
const DEPENDS_ON_ROWS = [
  'must be after the start of', 'must have as many items as dates', 'needs a number of seats', 'must be in the future',
  'must not be after the start of', 'must be after registration opens', 'must be before closesAt',
  'cannot be removed before the draw',
]

/** Texts that disclose internals: of the database, the code or the machine. */
const INTERNAL = new RegExp([
  /\bat \S+ \(|\bat (file|node|async)\b/, /node_modules|node:internal|\.[jt]s:\d+/, /\/(dist|lib|home|tmp|usr|work)\//,
  /\b(SELECT|INSERT INTO|DELETE FROM|UPDATE \w+ SET|RETURNING)\b/, /postgres|violates|constraint|relation "|column "/,
  /invalid input syntax|invalid byte|out of range|ECONN|EPIPE|CONNECTION_/
].map(({ source }) => source).join('|'), 'i')

/** Throws unless the response is allowed for this request. */
export async function checkResponse (
  response: Response, message: Message, operation: Operation, operations: Operation[], fixture: Fixture
) {
  const { status, headers, body } = response
  if (status >= 400) {
    const [leak] = INTERNAL.exec(body + Object.values(headers).join('\n')) ?? []
    if (leak) throw new Error(`It discloses internals: "${leak}"`)
  }
  if (status === 304 && message.isConditional) return
  // A CORS preflight.
  if (status === 204 && message.method === 'OPTIONS') return

  const asked = message.asked ? [message.asked] : operations
  const accepts = (schema: Schema | undefined) => schema && isLike(schema, response, message)
  if (!asked.some(({ responses }) => accepts(responses[status]))) {
    if (message.kind === 'valid' || !GENERAL.includes(status)) {
      throw new Error(`The operation does not declare this: ${ajv.errorsText()}`)
    }
    if (message.method !== 'HEAD' && !isMessage(response)) throw new Error('Not JSON {message}')
  }
  const canSucceed = Object.keys(operation.responses).some(status => Number(status) < 400)
  const isInvalid = body.includes('"Validation error"') && !DEPENDS_ON_ROWS.some(text => body.includes(text))
  if (message.kind === 'valid' && canSucceed && isInvalid) {
    throw new Error('A valid request fails validation')
  }
  if (status >= 500 && !await isExpected(message, fixture)) {
    throw new Error(`The contract has no ${status} for this`)
  }
  // This operation hides its failures behind an empty list.
  if (body === '{"mentors":[]}') throw new Error('The mentors are gone')
}

/** Whether the content type is declared and the body matches the schema. */
function isLike (schema: Schema, { headers, body }: Response, { method }: Message) {
  if (method === 'HEAD') return true
  const type = headers['content-type']
  if (schema.type === 'null') return body === '' && type === undefined
  // Of texts, with their charset.
  if (schema.contentMediaType) return String(type).replace('; charset=utf-8', '') === schema.contentMediaType
  if (schema.enum) return type === 'text/plain; charset=utf-8' && schema.enum.includes(body)
  return type === 'application/json; charset=utf-8' && ajv.validate(schema, parse(body))
}

function isMessage ({ headers, body }: Response) {
  const { message, ...others } = Object(parse(body)) as { message?: unknown }
  return headers['content-type'] === 'application/json; charset=utf-8' && typeof message === 'string' &&
    Object.keys(others).length === 0
}

function parse (body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    throw new Error('The body is not JSON')
  }
}

async function isExpected ({ asked, params, query, bearer, json }: Message, { sql }: Fixture) {
  const body = Object(json) as Record<string, unknown>
  return asked && EXPECTED_500S[asked.name]?.({ sql, params, query, bearer, body })
}
