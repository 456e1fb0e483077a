import { HttpError } from '../errors.ts'

let common: Promise<Set<string>> | undefined

/** Some 49,000 passwords, loaded with the first one that is set: the service starts faster without them. */
async function loadCommonPasswords () {
  const { dictionary } = await import('@zxcvbn-ts/language-common')
  return new Set(dictionary['passwords-common'])
}

/**
 * Throws the 400 of a schema for this field when a new password is one of those that are tried first: a common one
 * (NIST SP 800-63B, § 3.1.1.2), or one with the email of its account in it. Upper case makes no difference.
 */
export async function assertHardToGuess (field: string, password: string, email: string) {
  const lower = password.toLowerCase()
  common ??= loadCommonPasswords()
  if ((await common).has(lower)) refuse(field, 'must not be a common password')
  if (lower.includes(email.toLowerCase())) refuse(field, 'must not contain your email address')
}

function refuse (path: string, message: string): never {
  throw new HttpError(400, 'Validation error', { fields: { errors: [{ path, message }] } })
}
