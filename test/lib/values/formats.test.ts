import { isEmail, isName, isPassword, isText, isUrl, printable, printableLine } from '#lib/values/formats.js'
import t from '../../suite.ts'

const LABEL = 'a'.repeat(63)

t.test('An email is a plain local@domain.tld', async t => {
  const good = [
    'a@b.co', 'Ada.Lovelace+club@Students.Example.ORG', '1@2.3', "o'brien_{x}|~!#$%&*/=?^`-@example.org",
    'a.b.c@example.org', 'a@xn--bcher-kva.example', `${'l'.repeat(64)}@example.org`, `a@${LABEL}.org`,
    `${'l'.repeat(64)}@${LABEL}.${LABEL}.${'a'.repeat(61)}`,
  ]
  for (const email of good) t.equal(isEmail(email), true, email)

  const bad = [
    '.a@example.org', 'a.@example.org', 'a..b@example.org', '.@example.org',
    '', 'a', '@', 'a@', '@example.org', 'a@b', 'a@localhost', 'a@@example.org', 'a@b@example.org', 'a b@example.org',
    ' a@example.org', 'a@example.org ', 'a@example.org\n', 'a@example..org', 'a@.example.org', 'a@example.org.',
    'a@-example.org', 'a@example-.org', 'a@exa_mple.org', 'a@[127.0.0.1]', '"a b"@example.org', 'Ada <a@example.org>',
    'a,b@example.org', 'a@example.org,b@example.org', 'a@bücher.example', 'ü@example.org', 'a\0@example.org',
    'a@example.org\0', `${'l'.repeat(65)}@example.org`, `a@${LABEL}a.org`,
    `${'l'.repeat(64)}@${LABEL}.${LABEL}.${'a'.repeat(62)}`,
  ]
  for (const email of bad) t.equal(isEmail(email), false, JSON.stringify(email))
})

t.test('A name has a visible character, one line and at most 200 characters', async t => {
  const names = [
    'José', 'Nguyễn', '李', "O'Brien", 'محمد', 'Ada', 'x'.repeat(200), 'می\u200cخواهم', 'ක්\u200dෂ', ' Ada ', 'Ada 2',
    'שרה\u200e', '+1', '\t=1',
  ]
  t.strictSame(names.filter(name => !isName(name)), [])
  const others = [
    '', ' ', '\u00a0', '\u200b', '\u200d', '\ufeff', '\u2060', '\u3164', '\uffa0', '\u115f', '\u1160', '\u2800',
    '\u00ad', '\u3000', '\u0301', '\u{e0041}', '\u{1d159}', '\ufffc', '\t', 'x'.repeat(201), 'Ada\nBcc',
    'Ada\r', 'Ada\v', 'Ada\u2028', 'Ada\u2029',
    'Ada\x85', 'Ada\0', 'Ada\u202e', '\u202dAda', '\u2066Ada\u2069', 'Ada\ud83d', 'Ada\x1b[31m',
  ]
  t.strictSame(others.filter(isName), [])
})

t.test('A text has no NUL', async t => {
  for (const text of ['', ' ', 'ü€😀', '\u0001\n\t', '\\u0000']) t.equal(isText(text), true, JSON.stringify(text))
  for (const text of ['\0', 'a\0b', 'a\0']) t.equal(isText(text), false, JSON.stringify(text))
})

t.test('A password has no half of a character, either', async t => {
  for (const text of ['', 'ü€😀', '\ufffd']) t.equal(isPassword(text), true, JSON.stringify(text))
  for (const text of ['\0', 'a\ud83d', '\ude00\ud83d']) t.equal(isPassword(text), false, JSON.stringify(text))
})

t.test('A URL is valid for new URL(), without NUL', async t => {
  const good = ['https://example.org', 'http://localhost:3000/a?b#c', 'mailto:a@example.org', 'data:,x', 'a:b',
    ' https://example.org ', `https://example.org/${'a'.repeat(9999)}`, `data:,${'a'.repeat(9999)}`]
  for (const url of good) t.equal(isUrl(url), true, url)

  const bad = ['', 'example.org', '/path', '//example.org', 'https://', 'https://example.org:99999', 'http://[::1',
    'https://example.org/\0', 'a:\0', `https://${'a'.repeat(1001)}`]
  for (const url of bad) t.equal(isUrl(url), false, JSON.stringify(url))
})

t.test('A printable text has no control characters except line feeds and tabs', async t => {
  for (const text of ['', ' a  b ', 'a\n\n\tb\n', 'ü€😀\ufffd', '👩‍👩‍👧']) {
    t.equal(printable(text), text, JSON.stringify(text))
  }
  t.equal(printable('a\r\nb\rc\n\rd\u2028e\u2029f'), 'a\nb\nc\n\nd\ne\nf')
  t.equal(printable('\0\x01\x08\x0b\x1b[0m\x7f\x85\x9f\ufffe\uffff'), '[0m')
  t.equal(printableLine(' a\r\n b\tc\0\n'), 'a b c')
})
