import { text } from 'node:stream/consumers'
import type { ReadStream, WriteStream } from 'node:tty'

import { read } from 'read'

import { isText, wasNotUtf8 } from '../formats.ts'
import { StartupError } from '../errors.ts'

/** The source of a password: the terminal, or a pipe that carries nothing else. */
interface Terminal {
  input: Pick<ReadStream, 'isTTY'> & NodeJS.ReadableStream
  output: Pick<WriteStream, 'isTTY'> & NodeJS.WritableStream
}

/**
 * Reads a password: all of standard input less the line break at its end, or typed twice and not shown.
 * Throws a StartupError when it has fewer than 8 characters, when the two differ, or when there is no terminal.
 */
export async function readPassword (
  piped = false, { input, output }: Terminal = { input: process.stdin, output: process.stderr }
) {
  if (!piped && !input.isTTY) throw new StartupError('No terminal to ask for the password at: use --password-stdin')
  const ask = (prompt: string) => read({ prompt, silent: true, input, output }).catch(() => {
    throw new StartupError('No password was given')
  })
  const password = piped ? (await text(input)).replace(/\r?\n$/, '') : await ask('Password:')
  if (password.length < 8) throw new StartupError('The password must have at least 8 characters')
  if (wasNotUtf8(password)) throw new StartupError('The password must be typed, or piped, in UTF-8')
  if (!isText(password)) throw new StartupError('The password must not contain the character NUL')
  if (!piped && password !== await ask('Again:')) {
    throw new StartupError('The two passwords differ')
  }
  return password
}
