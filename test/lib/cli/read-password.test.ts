import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { readPassword } from '#lib/cli/read-password.js'
import { StartupError } from '#lib/config/startup-error.js'
import t from '../../suite.ts'

const SHORT = 'The password must have at least 8 characters'
const NUL = 'The password must not contain the character NUL'
const UTF8 = 'The password must be in UTF-8'

/** A terminal where one of these lines is typed at each prompt. Collects its output. */
function terminal (...typed: string[]) {
  const input = Object.assign(new PassThrough(), { isTTY: true })
  const output = Object.assign(new PassThrough(), { isTTY: true })
  let shown = ''
  output.setEncoding('utf8').on('data', async (text: string) => {
    shown += text
    // Once for each prompt. readline listens only a moment later.
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

t.test('prompts twice, without echo', async t => {
  const { streams, shown } = terminal('correct horse', 'correct horse')
  t.equal(await readPassword(false, streams), 'correct horse')
  t.match(shown(), /Password:[^]*Again:/)
  t.notMatch(shown(), /correct|horse/)
})

t.test('accepts eight characters and rejects seven', async t => {
  t.equal(await readPassword(false, terminal('12345678', '12345678').streams), '12345678')
  const short = terminal('1234567', '1234567')
  await t.rejects(readPassword(false, short.streams), new StartupError(SHORT))
  t.strictSame(short.typed, ['1234567'], 'does not prompt again')
})

t.test('rejects two that differ', async t => {
  const { streams, shown } = terminal('correct horse', 'correct house')
  await t.rejects(readPassword(false, streams), new StartupError('The two passwords differ'))
  t.notMatch(shown(), /correct|ho[ru]se/)
})

t.test('Ctrl-C cancels the prompt', async t => {
  const { streams } = terminal('\x03')
  await t.rejects(readPassword(false, streams), new StartupError('No password was given'))
})

t.test('does not prompt without a terminal', async t => {
  const expected = new StartupError('Cannot ask for the password without a terminal. Use --password-stdin.')
  await t.rejects(readPassword(false, pipe('correct horse\n')), expected)
})

t.test('reads a pipe to its end, without the last line break', async t => {
  const passwords: [content: string, password: string][] = [
    ['correct horse', 'correct horse'],
    ['correct horse\n', 'correct horse'],
    ['correct horse\r\n', 'correct horse'],
    ['correct horse\n\n', 'correct horse\n'],
    [' correct\nhorse ', ' correct\nhorse '],
    ['ﬀ pässwörd 🐎', 'ﬀ pässwörd 🐎'],
    ['12345678\n', '12345678'],
    ['\ufeffcorrect horse\r\n', 'correct horse'],
  ]
  for (const [content, password] of passwords) t.equal(await readPassword(true, pipe(content)), password)
})

t.test('rejects a password that is too short or cannot be stored', async t => {
  const refused: [content: string | Buffer, message: string][] = [
    [Buffer.from('pässwörter', 'latin1'), UTF8],
    ['', SHORT], ['\n', SHORT], ['1234567\n', SHORT], ['correct\0horse\n', NUL],
  ]
  for (const [content, message] of refused) {
    await t.rejects(readPassword(true, pipe(content)), new StartupError(message))
  }
})
