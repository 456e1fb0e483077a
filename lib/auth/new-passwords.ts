import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import { adjacencyGraphs, dictionary } from '@zxcvbn-ts/language-common'

import { HttpError } from '../errors.ts'

/** Passwords that are found within so many guesses are refused: they include each of 49,000 common ones. */
const COMMON = 50_000

/** The length of the longest common password. To look at one of 256 characters would take up to a second. */
const LONGEST = 20

/** Made with the first password that is set: that takes 50 ms and 9 MB. */
let estimator: ZxcvbnFactory | undefined

/**
 * Throws the 400 of a schema for this field when a new password is one of those that are tried first: a common one, a
 * repetition, a sequence or a date (NIST SP 800-63B, § 3.1.1.2), or one with the email of its account in it. Upper case
 * makes no difference.
 */
export async function assertStrongPassword (field: string, password: string, email: string) {
  const lower = password.toLowerCase()
  if (password.length <= LONGEST) {
    estimator ??= new ZxcvbnFactory({
      dictionary: { passwords: dictionary['passwords-common'] }, graphs: adjacencyGraphs,
    })
    if (estimator.check(lower).guesses <= COMMON) refuse(field, 'must not be a common password')
  }
  if (lower.includes(email.toLowerCase())) refuse(field, 'must not contain your email address')
}

function refuse (path: string, message: string): never {
  throw new HttpError(400, 'Validation error', { fields: { errors: [{ path, message }] } })
}
