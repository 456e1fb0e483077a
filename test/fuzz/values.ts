// Values for requests: valid for a schema, or hostile.
import fc, { type Arbitrary } from 'fast-check'

import { FORMATS } from '#lib/values/formats.js'
import type { Schema } from './operations.ts'

/** Texts that often reveal bugs. */
const TRICKY = [
  '', ' ', '\0', 'a\0b', '\ud800', 'x\udc00y', '\u202e', '\ufeff', '\u2028', 'İ', 'ß', 'e\u0301', '👩‍👩‍👧',
  '\r\nSet-Cookie: a=b',
  '__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'null', 'undefined', 'NaN', 'Infinity', 'true',
  '0', '-0', '-1', '1e400', '0x10', '1_000', '9223372036854775808', '1.5', '١٢',
  '\'; DROP TABLE users; --', '" OR ""="', '$1', '{{1}}', '%00', '%s%n', '../../../etc/passwd', '<script>', '\\', '/',
  'javascript:alert(1)', 'a:', 'http://[::1', 'a@b', 'a@b.c', `${'a'.repeat(64)}@${'b'.repeat(63)}.example`,
  '0000-00-00', '2026-02-30', '+275760-09-13T00:00:00Z', '-000001-01-01T00:00:00Z',
]

/** Keys with a meaning in JavaScript. */
const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'length', 'then', '', 'role', 'id']

/** Any text, rarely a very long one. */
export const anyText = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...TRICKY) },
  { weight: 4, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 2, arbitrary: fc.string({ unit: fc.constantFrom('\ud800', '\udfff', 'a', '"'), maxLength: 8 }) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constantFrom('x', 'é', '\0', '"', '😀'), fc.integer({ min: 100, max: 6000 }))
      .map(([unit, count]) => unit.repeat(count)),
  })

/** Deeply nested arrays or objects. */
const deep = fc.tuple(fc.integer({ min: 5, max: 5000 }), fc.boolean()).map(([depth, isArray]) =>
  isArray ? '['.repeat(depth) + ']'.repeat(depth) : '{"a":'.repeat(depth) + '1' + '}'.repeat(depth))

/** Any JSON as text, with duplicate keys, unrepresentable numbers, and keys with a meaning in JavaScript. */
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

/** Text that is not valid JSON. */
export const invalidJson = fc.constantFrom(
  '{', '}', '[1,]', '{"a":1,}', "{'a': 1}", 'undefined', 'NaN', '01', '"\u0001"', '"', '\ufeff{}', '{}{}', '{} //',
  '\0', ' ', '{"a": 1', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--', 'a=1&b=2', '<a/>')

/** Writes a JSON object of values that are JSON already; keys may repeat. */
export function toObject (entries: (readonly [key: string, json: string])[]) {
  return `{${entries.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join()}}`
}

const ordinaryText = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
  { weight: 1, arbitrary: fc.integer({ min: 100, max: 4000 }).map(count => 'x'.repeat(count)) })

const dateTimes = fc.date({ noInvalidDate: true, min: new Date('0001-01-02'), max: new Date('9999-12-30') })
  .map(date => date.toISOString())
const urls = fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }), fc.constantFrom('a:', 'data:,x'))

/** Generators for the formats of this service. */
const GENERATORS: Record<string, Arbitrary<string>> = {
  cursor: fc.tuple(dateTimes, fc.uuid()).map(position => Buffer.from(position.join(' ')).toString('base64url')),
  'date-time': dateTimes,
  email: fc.oneof(fc.uuid().map(id => `${id}@example.org`), fc.emailAddress()),
  name: ordinaryText.map(text => `A${text}`),
  'page-size': fc.integer({ min: 1, max: 100 }).map(String),
  password: ordinaryText.map(text => text.replace(/[\0\p{Surrogate}]/gu, '')),
  text: ordinaryText.map(text => text.replaceAll('\0', '')),
  url: urls,
  'url-or-empty': fc.oneof(urls, fc.constant('')),
  visible: ordinaryText.map(text => `A${text.replaceAll('\0', '')}`),
  'web-url': fc.webUrl({ withQueryParameters: true }),
}

/** Values for a field that its schema does not describe, such as existing ids. */
export type Known = (name: string) => Arbitrary<string> | undefined

/** Generates values that a schema accepts. Throws for keywords that it does not know. */
export function validValues (schema: Schema, known: Known, name = ''): Arbitrary<unknown> {
  const { type, format, enum: words, const: word, anyOf, minLength = 0, maxLength = Infinity } = schema
  if (words) return fc.constantFrom(...words)
  if (word !== undefined) return fc.constant(word)
  if (anyOf) return fc.oneof(...anyOf.map(each => validValues(each, known, name)))
  if (Array.isArray(type)) return fc.oneof(...type.map(each => validValues({ ...schema, type: each }, known, name)))
  switch (type) {
    case 'null': return fc.constant(null)
    case 'boolean': return fc.boolean()
    case 'integer': return fc.integer({ min: schema.minimum, max: schema.maximum })
    case 'number': return fc.double({ min: schema.minimum, max: schema.maximum, noNaN: true })
    case 'array': {
      const items = validValues(schema.items ?? {}, known, name)
      const length = { minLength: schema.minItems, maxLength: Math.min(5, schema.maxItems ?? Infinity) }
      return schema.uniqueItems ? fc.uniqueArray(items, length) : fc.array(items, length)
    }
    case 'object': {
      const { properties = {}, required = [] } = schema
      const fields = Object.entries(properties).map(([name, field]) => [name, validValues(field, known, name)])
      return fc.record<Record<string, unknown>>(Object.fromEntries(fields), { requiredKeys: required })
    }
    case 'string': {
      const check = format ? FORMATS[format]!.check : () => true
      const arbitrary = format ? GENERATORS[format]?.filter(check) ?? fail(`format ${format}`) : ordinaryText
      const isAccepted = (text: string) => text.length >= minLength && text.length <= maxLength && check(text)
      const fitting = arbitrary.map(text => text.padEnd(minLength, 'x').slice(0, maxLength))
      const better = known(name)
      return better ? fc.oneof({ weight: 4, arbitrary: better.filter(isAccepted) }, fitting) : fitting
    }
    default: return fail(`type ${type}`)
  }
}

function fail (what: string): never {
  throw new Error(`No generator for ${what}: add one to test/fuzz/values.ts`)
}
