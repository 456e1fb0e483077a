import type { ZxcvbnFactory } from '@zxcvbn-ts/core'

import { HttpError } from '../errors.ts'

/** Passwords that are found within so many guesses are refused: they include each of 49,000 common ones. */
const COMMON = 50_000

/** The length of the longest common password. To look at one of 256 characters would take up to a second. */
const LONGEST = 20

let estimator: Promise<ZxcvbnFactory> | undefined

/**
 * Loaded with the first password that is set, which holds up other requests for some 80 ms, once: every start would
 * take as much longer, and the process 18 MB more, also where no password is set.
 */
async function loadEstimator () {
  const [{ ZxcvbnFactory }, { adjacencyGraphs, dictionary }] =
    await Promise.all([import('@zxcvbn-ts/core'), import('@zxcvbn-ts/language-common')])
  return new ZxcvbnFactory({ dictionary: { passwords: dictionary['passwords-common'] }, graphs: adjacencyGraphs })
}

/**
 * Throws the 400 of a schema for this field when a new password is one of those that are tried first: a common one, a
 * repetition, a sequence or a date (NIST SP 800-63B, § 3.1.1.2), or one with the email of its account in it. Upper case
 * makes no difference.
 */
export async function assertStrongPassword (field: string, password: string, email: string) {
  const lower = password.toLowerCase()
  if (password.length <= LONGEST) {
    estimator ??= loadEstimator()
    if ((await estimator).check(lower).guesses <= COMMON) refuse(field, 'must not be a common password')
  }
  if (lower.includes(email.toLowerCase())) refuse(field, 'must not contain your email address')
}

function refuse (path: string, message: string): never {
  throw new HttpError(400, 'Validation error', { fields: { errors: [{ path, message }] } })
}
