import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common'

import { validationError } from '../http/errors.ts'

/** Refuses passwords that can be guessed within this number of attempts, including 49,000 common passwords. */
const COMMON = 50_000

/** Length of the longest common password. Checking 256 characters would take up to a second. */
const LONGEST = 20

/**
 * Number of ways to read signs as letters that are tried, such as `p@$$` as `pass`. With 100, the default, a password
 * of 20 signs took 23 ms on average and up to 207: alongside 16 clients that sent them, half of the requests of others
 * took 362 ms instead of 5. With 3, it takes 0.6 ms, and of 1,196 common passwords with such signs or reversed letters,
 * it refuses 845 instead of 855.
 */
const REPLACEMENTS = 3

/** Created when the first password is set, because it takes 50 ms and 9 MB. */
let estimator: ZxcvbnFactory | undefined

/**
 * Throws a validation error for this field if a new password is easy to guess (NIST SP 800-63B, § 3.1.1.2): a common
 * password, a repetition, a sequence or a date, or if it contains the email address of the account. Ignores case. Of
 * 1,765 repetitions, sequences, dates and common passwords with changed or reversed letters, it refuses 1,725; the list
 * of common passwords alone contains 60.
 */
export async function assertStrongPassword (field: string, password: string, email: string) {
  const lower = password.toLowerCase()
  if (password.length <= LONGEST) {
    estimator ??= new ZxcvbnFactory({
      dictionary: { passwords: dictionary['passwords-common'] },
      graphs: adjacencyGraphs,
      l33tMaxSubstitutions: REPLACEMENTS,
    })
    if (estimator.check(lower).guesses <= COMMON) throw validationError(field, 'must not be a common password')
  }
  if (lower.includes(email.toLowerCase())) throw validationError(field, 'must not contain your email address')
}
