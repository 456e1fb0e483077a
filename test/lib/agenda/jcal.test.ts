import fc from 'fast-check'
import ICAL from 'ical.js'

import { type Component, type Property, writeComponent } from '#lib/agenda/jcal.js'
import t from '../../suite.ts'

// Without the space at the start of a folded line.
ICAL.foldLength = 74

const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 200 }), fc.string({ maxLength: 100 }),
  fc.constantFrom('a,b;c\\d\n"e":f^g', 'x'.repeat(300), 'é'.repeat(100), '😀'.repeat(60), ''))
const line = text.map(text => text.replaceAll('\n', ' '))

const component = fc.tuple(text, line, line).map(([summary, name, place]): Component => ['vevent', [
  ['summary', {}, 'text', summary],
  ['location', {}, 'text', place],
  ['organizer', { cn: name }, 'cal-address', 'invalid:nomail'],
  ['dtstart', {}, 'date-time', '2026-01-31T09:30:00Z'],
  ['duration', {}, 'duration', 'PT2H'],
  ['sequence', {}, 'integer', 7],
  ['conference', { value: 'URI' }, 'uri', 'https://meet.example.org/a,b;c'],
], []])

t.test('Calendars are written as a different library writes them', async () => {
  // It writes VALUE of a property by itself.
  const plain = ([name, parameters, type, value]: Property) => {
    const { value: _, ...others } = parameters
    return [name, others, type, value]
  }
  fc.assert(fc.property(component, ([name, properties, components]) => {
    const expected = new ICAL.Component([name, properties.map(plain), components]).toString()
    return writeComponent([name, properties, components]) === expected
  }), { numRuns: 1000 })
})

t.test('Lines have at most 75 octets, and no character is divided', async t => {
  const written = writeComponent(['vevent', [['summary', {}, 'text', '😀é'.repeat(100)]], []])
  for (const line of written.split('\r\n')) t.ok(Buffer.byteLength(line) <= 75 && !line.includes('\ufffd'), line)
  t.equal(written.replaceAll('\r\n ', ''), `BEGIN:VEVENT\r\nSUMMARY:${'😀é'.repeat(100)}\r\nEND:VEVENT`)
})

t.test('Components are nested, and offsets have no colon', async t => {
  const written = writeComponent(['vtimezone', [['tzid', {}, 'text', 'UTC']], [
    ['standard', [['tzoffsetto', {}, 'utc-offset', '+00:00']], []],
  ]])
  t.strictSame(written.split('\r\n'), [
    'BEGIN:VTIMEZONE', 'TZID:UTC', 'BEGIN:STANDARD', 'TZOFFSETTO:+0000', 'END:STANDARD', 'END:VTIMEZONE',
  ])
})
