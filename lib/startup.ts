import { setDefaultAutoSelectFamilyAttemptTimeout } from 'node:net'

import { StartupError } from './config/startup-error.ts'
import { HttpError } from './http/errors.ts'

/**
 * Time to try one IP address of a host before the next. With Node's 250 ms, distant servers would be unreachable if
 * their other IP addresses do not respond.
 */
const ATTEMPT_MS = 2000

/**
 * Runs an entry point. For a StartupError, an HttpError, and an error of PostgreSQL that an operator can fix, prints
 * the message. For any other error, prints the stack trace. Both set the exit code 1.
 */
export async function runMain (main: () => Promise<void>) {
  setDefaultAutoSelectFamilyAttemptTimeout(ATTEMPT_MS)
  try {
    await main()
  } catch (error) {
    console.error(describeFailure(error))
    process.exitCode = 1
  }
}

/**
 * SQLSTATEs that an operator can fix: a read-only server, missing rights, missing resources such as disk space, and a
 * stopped server.
 */
const FOR_OPERATORS = /^(25006|42501|53|57P)/

function describeFailure (error: unknown) {
  if (error instanceof StartupError || error instanceof HttpError) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  return FOR_OPERATORS.test(String(code)) ? `PostgreSQL: ${message}` : error
}
