import { text as readText } from 'node:stream/consumers'

import { assertStrongPassword } from '#lib/auth/new-passwords.js'
import { chooseFrontend, decodeState } from '#lib/auth/oauth-state.js'
import { fromCell, toCsv, toFileName } from '#lib/values/csv.js'
import { isEmail, isPassword, isSecureUrl, isUrl, isUuid, printable, printableLine } from '#lib/values/formats.js'
import { clientNetwork } from '#lib/http/client-network.js'
import { measureJson } from '#lib/http/json-size.js'
import { pathOf } from '#lib/http/logger.js'
import { requestIdOf, traceOf } from '#lib/http/trace-context.js'
import { toDecodable } from '#lib/http/decodable-url.js'
import { atom } from '#routes/feeds/atom.js'
import { icalendar } from '#routes/feeds/icalendar.js'
import t from '../../suite.ts'

const LENGTH = 100_000

/** Texts for which a quadratic function takes seconds: repeated parts, some after a matching beginning. */
const PARTS = [
  '\t', ' ', ' \t', '\n', '\r\n', '"', '\t"', '";', "'", ';', '=', 'a', 'a.', 'a@', '-a', '0', '1.', '@', ':', '%',
  '%41', '[', '&', '\\', ',', '\u0001', '\u2028', '\u0301\u0316', '\ufdfa', 'İ', '\ud800', '😀',
]
const TEXTS = [
  ...PARTS.map(part => part.repeat(LENGTH / part.length)),
  ...['a.', '-', 'a-'].map(part => `a@${part.repeat(LENGTH / 2)}!`),
  `00-${'a'.repeat(LENGTH)}`,
  ...[...PARTS, '你', 'xn--'].map(part => ` ht\ttp:\\${part.repeat(LENGTH / part.length)}`),
]

const NOW = '2026-01-31T09:30:00.000Z'
const BLOG = { id: '1', publishedAt: NOW, updatedAt: NOW }
const EVENT = { id: '1', date: NOW, createdAt: NOW, updatedAt: NOW, sequence: 0 }
const calendar = icalendar('https://example.org')
const feed = atom('https://example.org', null)

async function * rowOf (name: string) {
  yield { name }
}

/** All functions that apply regular expressions to input from clients. */
const FUNCTIONS: Record<string, (text: string) => unknown> = {
  measureJson: text => measureJson(Buffer.from(text)),
  chooseFrontend: text => chooseFrontend(['https://app.example.org'], text),
  isEmail,
  isPassword,
  isSecureUrl,
  isUrl,
  isUuid,
  printable,
  printableLine,
  clientNetwork,
  fromCell,
  pathOf,
  requestIdOf,
  toDecodable,
  toFileName,
  traceOf,
  toCsv: text => readText(toCsv(rowOf(text), { name: 'name' })),
  icalendar: text => [...calendar.write({ name: text }, [{ ...EVENT, title: text, description: text, club: text }])],
  atom: text => [...feed.write({ updated: NOW }, [{ ...BLOG, title: text, content: text, author: text }])],
  decodeState (text) { try { decodeState(text) } catch {} },
  assertStrongPassword: text => assertStrongPassword('password', text, 'ada@example.org').catch(() => {}),
}

for (const [name, run] of Object.entries(FUNCTIONS)) {
  t.test(`${name} takes a moment for any text of ${LENGTH} characters`, async t => {
    await run('once')
    for (const text of TEXTS) {
      // Other processes of a busy machine take none of this process's time.
      const start = process.cpuUsage()
      await run(text)
      const { user, system } = process.cpuUsage(start)
      const duration = (user + system) / 1000
      if (duration > 1000) t.fail(`${JSON.stringify(text.slice(0, 10))} takes ${Math.round(duration)} ms`)
    }
  })
}
