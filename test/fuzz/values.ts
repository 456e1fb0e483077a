// Values for requests: such as a schema asks for, and such as nobody would send in good faith.
import fc, { type Arbitrary } from 'fast-check'

import { isEmail, isText, isUrl } from '#lib/formats.js'
import type { Schema } from './operations.ts'

/** Texts that somebody trips over, somewhere. */
const TRICKY = [
  '', ' ', '\0', 'a\0b', '\ud800', 'x\udc00y', '\u202e', '\ufeff', '\u2028', 'İ', 'ß', 'e\u0301', '👩‍👩‍👧',
  '\r\nSet-Cookie: a=b',
  '__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'null', 'undefined', 'NaN', 'Infinity', 'true',
  '0', '-0', '-1', '1e400', '0x10', '1_000', '9223372036854775808', '1.5', '١٢',
  '\'; DROP TABLE users; --', '" OR ""="', '$1', '{{1}}', '%00', '%s%n', '../../../etc/passwd', '<script>', '\\', '/',
  'javascript:alert(1)', 'a:', 'http://[::1', 'a@b', 'a@b.c', `${'a'.repeat(64)}@${'b'.repeat(63)}.example`,
  '0000-00-00', '2026-02-30', '+275760-09-13T00:00:00Z', '-000001-01-01T00:00:00Z',
]

/** Keys that mean something to objects of JavaScript. */
const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'length', 'then', '', 'role', 'id']

/** Any text at all, seldom a very long one. */
export const anyText = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...TRICKY) },
  { weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 2, arbitrary: fc.string({ unit: fc.constantFrom('\ud800', '\udfff', 'a', '"'), maxLength: 8 }) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom('x', 'é', '\0', '"', '😀'), fc.integer({ min: 100, max: 6000 }))
      .map(([unit, count]) => unit.repeat(count)),
  })

/** A nesting of arrays or objects that is deeper than anybody needs. */
const deep = fc.tuple(fc.integer({ min: 5, max: 5000 }), fc.boolean()).map(([depth, isArray]) =>
  isArray ? '['.repeat(depth) + ']'.repeat(depth) : '{"a":'.repeat(depth) + '1' + '}'.repeat(depth))

/** Any JSON, as text: with the same key twice, with numbers that no number can hold, with keys that mean something. */
export const anyJson: Arbitrary<string> = fc.letrec<{ json: string }>(tie => ({
  json: fc.oneof({ maxDepth: 3, depthSize: 'small' },
    {
      weight: 6,
      arbitrary: fc.oneof(
        anyText.map(text => JSON.stringify(text)),
        fc.constantFrom('null', 'true', 'false', '[]', '{}', '""', '0', '-0', '1e400', '-1e400', '1e-400', '0.1',
          '2020.0', '9007199254740993', '-9223372036854775809', '123456789012345678901234567890', '"\\ud800"',
          '"\\u0000"'),
        fc.double().map(number => JSON.stringify(number))),
    },
    { weight: 1, arbitrary: deep },
    { weight: 2, arbitrary: fc.array(tie('json'), { maxLength: 4 }).map(items => `[${items.join()}]`) },
    {
      weight: 2,
      arbitrary: fc.array(fc.tuple(fc.oneof(fc.constantFrom(...KEYS), anyText), tie('json')), { maxLength: 4 })
        .map(toObject),
    }),
})).json

/** What is no JSON, or hardly. */
export const noJson = fc.constantFrom(
  '{', '}', '[1,]', '{"a":1,}', "{'a': 1}", 'undefined', 'NaN', '01', '"\u0001"', '"', '\ufeff{}', '{}{}', '{} //',
  '\0', ' ', '{"a": 1', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--', 'a=1&b=2', '<a/>')

/** Writes an object whose values are JSON already; a key may come twice. */
export function toObject (entries: (readonly [key: string, json: string])[]) {
  return `{${entries.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join()}}`
}

const ordinaryText = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.integer({ min: 100, max: 4000 }).map(count => 'x'.repeat(count)) })

/** What the formats of this service ask for, beside a check that this is right. */
const FORMATS: Record<string, [arbitrary: Arbitrary<string>, check: (text: string) => boolean]> = {
  text: [ordinaryText.map(text => text.replaceAll('\0', '')), isText],
  email: [fc.oneof(fc.uuid().map(id => `${id}@example.org`), fc.emailAddress().filter(isEmail)), isEmail],
  url: [
    fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }), fc.constantFrom('a:', 'data:,x')), isUrl,
  ],
}
FORMATS['url-or-empty'] = [fc.oneof(FORMATS.url![0], fc.constant('')), text => text === '' || isUrl(text)]

/** Values of some field that are worth more than what its schema tells of them. */
export type Known = (name: string) => Arbitrary<string> | undefined

/** Values that a schema accepts. Throws where it asks for something that is new here. */
export function accepted (schema: Schema, known: Known, name = ''): Arbitrary<unknown> {
  const { type, format, enum: words, const: word, anyOf, minLength = 0 } = schema
  if (words) return fc.constantFrom(...words)
  if (word !== undefined) return fc.constant(word)
  if (anyOf) return fc.oneof(...anyOf.map(each => accepted(each, known, name)))
  if (Array.isArray(type)) return fc.oneof(...type.map(each => accepted({ ...schema, type: each }, known, name)))
  switch (type) {
    case 'null': return fc.constant(null)
    case 'boolean': return fc.boolean()
    case 'integer': return fc.integer({ min: schema.minimum, max: schema.maximum })
    case 'number': return fc.double({ min: schema.minimum, max: schema.maximum, noNaN: true })
    case 'array': return fc.array(accepted(schema.items ?? {}, known, name), { maxLength: 5 })
    case 'object': {
      const { properties = {}, required = [] } = schema
      const fields = Object.entries(properties).map(([name, field]) => [name, accepted(field, known, name)])
      return fc.record<Record<string, unknown>>(Object.fromEntries(fields), { requiredKeys: required })
    }
    case 'string': {
      const [arbitrary, check] = format ? FORMATS[format] ?? fail(`format ${format}`) : [ordinaryText, () => true]
      const longEnough = arbitrary.map(text => text.padEnd(minLength, 'x'))
      const better = known(name)
      const isAccepted = (text: string) => text.length >= minLength && check(text)
      return better ? fc.oneof({ weight: 4, arbitrary: better.filter(isAccepted) }, longEnough) : longEnough
    }
    default: return fail(`type ${type}`)
  }
}

function fail (what: string): never {
  throw new Error(`The fuzzing knows no values of ${what}: add some to test/fuzz/values.ts`)
}
