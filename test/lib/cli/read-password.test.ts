import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import t from 'tap'

import { readPassword } from '#lib/cli/read-password.js'
import { StartupError } from '#lib/errors.js'

const SHORT = 'The password must have at least 8 characters'
const NUL = 'The password must not contain the character NUL'

/** A terminal at which each of these lines is typed as soon as something is asked; it keeps what it shows. */
function terminal (...typed: string[]) {
  const input = Object.assign(new PassThrough(), { isTTY: true })
  const output = Object.assign(new PassThrough(), { isTTY: true })
  let shown = ''
  output.setEncoding('utf8').on('data', async (text: string) => {
    shown += text
    // Once for each prompt; and only a moment later does readline listen.
    if (!text.includes(':')) return
    await sleep(1)
    const line = typed.shift()
    if (line !== undefined) input.write(`${line}\n`)
  })
  return { streams: { input, output }, shown: () => shown, typed }
}

function pipe (content: string | Buffer) {
  const input = Object.assign(new PassThrough(), { isTTY: false })
  input.end(content)
  return { input, output: Object.assign(new PassThrough(), { isTTY: false }) }
}

t.test('asks twice, and shows the password neither time', async t => {
  const { streams, shown } = terminal('correct horse', 'correct horse')
  t.equal(await readPassword(false, streams), 'correct horse')
  t.match(shown(), /Password:[^]*Once more:/)
  t.notMatch(shown(), /correct|horse/)
})

t.test('takes eight characters and refuses seven', async t => {
  t.equal(await readPassword(false, terminal('12345678', '12345678').streams), '12345678')
  const short = terminal('1234567', '1234567')
  await t.rejects(readPassword(false, short.streams), new StartupError(SHORT))
  t.strictSame(short.typed, ['1234567'], 'does not ask again')
})

t.test('refuses two that differ', async t => {
  const { streams, shown } = terminal('correct horse', 'correct house')
  await t.rejects(readPassword(false, streams), new StartupError('The two passwords differ'))
  t.notMatch(shown(), /correct|ho[ru]se/)
})

t.test('Ctrl-C ends the question', async t => {
  const { streams } = terminal('\x03')
  await t.rejects(readPassword(false, streams), new StartupError('No password was given'))
})

t.test('refuses to ask where there is no terminal', async t => {
  const expected = new StartupError('No terminal to ask for the password at: use --password-stdin')
  await t.rejects(readPassword(false, pipe('correct horse\n')), expected)
})

t.test('reads all of a pipe less the line break at its end', async t => {
  const passwords: [content: string, password: string][] = [
    ['correct horse', 'correct horse'],
    ['correct horse\n', 'correct horse'],
    ['correct horse\r\n', 'correct horse'],
    ['correct horse\n\n', 'correct horse\n'],
    [' correct\nhorse ', ' correct\nhorse '],
    ['ﬀ pässwörd 🐎', 'ﬀ pässwörd 🐎'],
    ['12345678\n', '12345678'],
  ]
  for (const [content, password] of passwords) t.equal(await readPassword(true, pipe(content)), password)
})

t.test('refuses what is too short or cannot be stored', async t => {
  const refused: [content: string, message: string][] = [
    ['', SHORT], ['\n', SHORT], ['1234567\n', SHORT], ['correct\0horse\n', NUL],
  ]
  for (const [content, message] of refused) {
    await t.rejects(readPassword(true, pipe(content)), new StartupError(message))
  }
})

t.test('says nothing while it reads a pipe', async t => {
  const streams = pipe('correct horse\n')
  await readPassword(true, streams)
  t.equal(streams.output.read(), null)
})
