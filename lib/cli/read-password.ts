import { text } from 'node:stream/consumers'
import type { ReadStream, WriteStream } from 'node:tty'

import { read } from 'read'

import { isText, wasNotUtf8 } from '../values/formats.ts'
import { StartupError } from '../config/startup-error.ts'

/** The source of a password: the terminal or a pipe. */
interface Terminal {
  input: Pick<ReadStream, 'isTTY'> & NodeJS.ReadableStream
  output: Pick<WriteStream, 'isTTY'> & NodeJS.WritableStream
}

/**
 * Reads a password: all of standard input without its final line break, or typed twice without echo.
 * Throws a StartupError if the password is shorter than 8 characters, if the two inputs differ, or without a
 * terminal.
 */
export async function readPassword (
  piped = false, { input, output }: Terminal = { input: process.stdin, output: process.stderr }
) {
  if (!piped && !input.isTTY) {
    throw new StartupError('Cannot ask for the password without a terminal. Use --password-stdin.')
  }
  const ask = (prompt: string) => read({ prompt, silent: true, input, output }).catch(() => {
    throw new StartupError('No password was given')
  })
  const password = piped ? (await text(input)).replace(/\r?\n$/, '') : await ask('Password:')
  if (password.length < 8) throw new StartupError('The password must have at least 8 characters')
  if (wasNotUtf8(password)) throw new StartupError('The password must be in UTF-8')
  if (!isText(password)) throw new StartupError('The password must not contain the character NUL')
  if (!piped && password !== await ask('Again:')) {
    throw new StartupError('The two passwords differ')
  }
  return password
}
