// Values of body fields that validation accepts, and values that it refuses.
import { randomUUID } from 'node:crypto'

import { ROLES } from '#lib/values/roles.js'

export interface Rule {
  /** A function makes a value that no row has yet. */
  takes: unknown[]
  refuses: unknown[]
}

const LONG = 'x'.repeat(10_240)
const NO_TEXT = [null, 0, 5, 1e20, true, false, ['https://example.org/a.png'], {}]

/** A text of at least so many characters, as JavaScript counts them. */
export const text = (least: number): Rule => ({
  takes: ['x'.repeat(least), ' '.repeat(least), '😀'.repeat(Math.ceil(least / 2)), LONG, '<b>"Zoë"</b> \'; -- \ufeff漢字'],
  refuses: ['', ...least > 1 ? ['x'.repeat(least - 1)] : [], 'NUL \0 among twenty characters', ...NO_TEXT],
})

/** A text that people can see. */
export const visible = (most: number): Rule => ({
  takes: ['x', ' x', 'x'.repeat(most), '<b>"Zoë"</b> \'; -- \ufeff漢字'],
  refuses: [' ', '\n\t\u00a0', '\u200b\u2800\u3164', 'x'.repeat(most + 1), ...text(1).refuses],
})

/** The name of a person or a club, outside the contract. */
export const name: Rule = {
  takes: ['x', ' x', 'x'.repeat(200), '<b>"Zoë"</b> \'; -- 漢字'],
  refuses: ['', '  ', '\u200b', 'a\nb', 'a\u202eb', 'x'.repeat(201), 'NUL \0', ...NO_TEXT],
}

/** Any text, also an empty one. */
export const anyText: Rule = { takes: ['', 'not a URL', 'https://network.example/ada', LONG], refuses: ['a\0', 5, true, [], {}] }

export const url: Rule = {
  takes: [
    'https://example.org/a.png', 'HTTPS://Example.ORG/a b', ' https://example.org/ü ?q#f ', 'data:,x', 'x:', 'mailto:ada@x.org',
    `data:,${LONG}`,
  ],
  refuses: ['', 'nope', '/a.png', '//example.org/a.png', 'https://', 'https://example.org/\0', ...NO_TEXT],
}

/** A URL outside the contract, which lists of others repeat. */
export const shortUrl: Rule = {
  takes: [...url.takes.slice(0, -1), 'data:,'.padEnd(2000, 'x')],
  refuses: ['data:,'.padEnd(2001, 'x'), ...url.refuses],
}

export const urlOrEmpty: Rule = { takes: ['', ...url.takes], refuses: [' ', ...url.refuses.slice(1)] }

export const email: Rule = {
  takes: [() => `UP.per+tag-${randomUUID()}@EXAMPLE.co.uk`, () => `${randomUUID()}@x.org`],
  refuses: [
    '', 'a', 'a@', '@x.org', 'a@b', 'a@x.org ', ' a@x.org', 'a b@x.org', 'a@x..org', 'a@b@x.org', 'a@x.org\n',
    'ada@x.org\0', '\ud800ada@x.org', ...NO_TEXT,
  ],
}

/** A new password. A lone surrogate is refused: stored, all passwords with one would be equal. */
export const password: Rule = {
  takes: ['12345678', '😀😀😀😀', 'é'.repeat(8), '        ', 'long '.repeat(2000)],
  refuses: ['', '1234567', '😀😀😀7', 'é'.repeat(7), 'p\ud800sswörter', 'NUL \0 in it', ...NO_TEXT],
}

/** The password of a sign-in. An empty password gets a different 400. */
export const anyPassword: Rule = { takes: [], refuses: ['NUL \0 in it', ...NO_TEXT] }

/** Any text that is not empty. The tests of events say which dates it may be. */
export const date: Rule = { takes: ['2031-02-03T00:00:00.000Z'], refuses: ['', ...NO_TEXT] }

export const oneOf = (...values: readonly string[]): Rule => ({
  takes: [...values],
  refuses: ['', values[0]!.toLowerCase(), values[0]!.toUpperCase(), ` ${values[0]}`, 'NONE', [values[0]], ...NO_TEXT]
    .filter(value => value !== values[0]),
})

export const status = oneOf('DRAFT', 'PUBLISHED', 'ARCHIVED')
export const role = oneOf(...ROLES)

/** The id of a club. The response to an unknown id depends on the operation. */
export const clubId: Rule = { takes: [], refuses: ['', '\0', ...NO_TEXT] }

/** An integer between these. */
export const integer = (least: number, most: number): Rule => ({
  takes: [least, least + 1, most],
  refuses: [
    least - 1, most + 1, -2020, least + 0.5, least + 0.000001, 1e300, String(least), '', true, null, [least], {},
  ],
})

/** The same rule, and null. */
export const nullable = ({ takes, refuses }: Rule): Rule =>
  ({ takes: [...takes, null], refuses: refuses.filter(value => value !== null) })

/** A link that a browser can follow safely. */
export const webUrl: Rule = {
  takes: ['https://example.org/a.png', 'HTTP://Example.ORG/a b'],
  refuses: [...url.refuses, 'data:,x', 'x:', 'javascript:alert(1)', 'mailto:ada@x.org', `https://x.org/${LONG}`],
}

const NO_DATE_TIME = [
  '', 'soon', '2031-02-03', '2031-02-03T10:00', '2031-02-30T10:00:00Z', '2031-02-03T25:00:00Z', '2031-13-03T10:00:00Z',
  '2031-02-03T10:00:00Z\0', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59-14:00', 'Feb 3 2031 10:00 UTC', ...NO_TEXT,
]

export const dateTime: Rule = { takes: ['2031-02-03T00:00:00.000Z'], refuses: NO_DATE_TIME }

/** The end of an event that begins in 2030. */
export const endAfter2030: Rule = {
  takes: ['2030-01-01T00:00:00.001Z', '2031-02-03T10:00:00.000Z', '9999-12-31T23:59:59.999Z', null],
  refuses: [
    'soon', '2030-01-01T00:00:00Z', '2029-12-31T23:59:59+00:00', ...NO_DATE_TIME.filter(value => value !== null),
  ],
}

/** When registration opens, and when it closes. */
export const opens: Rule = nullable({ ...dateTime, takes: ['2029-12-01T10:00:00.000Z'] })
export const closes: Rule = nullable({ ...dateTime, takes: ['2999-12-30T10:00:00.000Z'] })

/** When the seats are drawn. Its other values have tests of their own, because it needs a number of seats. */
export const draws: Rule = nullable({ ...dateTime, takes: [] })

/** The end of an event with the date above. */
export const endAfterDate: Rule = {
  takes: ['2031-02-03T00:00:00.001Z', ...endAfter2030.takes.slice(1)],
  refuses: ['2031-02-03T00:00:00Z', '2031-02-03T00:00:00+00:01', ...endAfter2030.refuses],
}

export const dates: Rule = {
  takes: [['2031-02-03T10:00:00.000Z']],
  refuses: [
    [], ['2031-02-03T10:00:00Z', '2031-02-03T11:00:00+01:00'], '2031-02-03T10:00:00Z', {}, null,
    Array.from({ length: 53 }, (_, n) => new Date(2e12 + n).toISOString()),
  ],
}

/** The ends of copies that begin on 8 and 15 January 2030. */
export const ends: Rule = {
  takes: [['2030-01-08T02:00:00Z', '2030-01-16T00:00:00+01:00']],
  refuses: [
    [], ['2030-01-08T02:00:00Z'], ['2030-01-08T02:00:00Z', '2030-01-15T00:00:00Z'],
    ['2030-01-09T00:00:00Z', '2030-01-09T00:00:00Z'], '2031-02-03T10:00:00Z', {}, null,
  ],
}

export const yesOrNo: Rule = { takes: [], refuses: [null, 0, 1, 'true', '', [], {}] }
