import { PLACEHOLDER } from '../../auth/passwords.ts'
import { createAccountLink } from '../account-links.ts'
import { formatTime, type EmailTemplate } from '../content.ts'

/** Asks the owner of the address to verify it. */
export const emailVerification: EmailTemplate = async (email, context) => {
  const { sql, config: { COMMUNITY_NAME: name } } = context
  const href = await createAccountLink(email, context, 'email', sql`email_verified_at IS NULL`)
  if (!href) return undefined
  return {
    subject: `Is this your email address? ${name}`,
    paragraphs: [
      `Someone created an account at ${name} with this email address. If it was you, confirm the address within ` +
        'seven days:',
      { text: 'Confirm the address', href },
      'We send other emails, for example reminders of events, only to confirmed addresses.',
      "If you didn't create this account, ignore this email. If you confirm, a stranger's account gets your address.",
    ],
  }
}

/** Tells the owner of the old address that an admin has changed the address of the account. */
export const emailChanged: EmailTemplate<{ to: string }> = async ({ data: { to }, createdAt }, { config }) => {
  const name = config.COMMUNITY_NAME
  return {
    to,
    subject: `Your email address at ${name} was changed`,
    paragraphs: [
      `An admin of ${name} changed the email address of your account on ${formatTime(createdAt, config)}. ` +
        'From now on, emails about your account go to the new address.',
      `If you didn't expect this change, contact the admins of ${name}.`,
    ],
  }
}

/** Asks the owner of a new address to confirm that an account may use it. */
export const emailChange: EmailTemplate<{ to: string }> = async (email, context) => {
  const { sql, config: { COMMUNITY_NAME: name } } = context
  const { data: { to }, createdAt } = email
  // A new password or signing out everywhere also cancels the change.
  const isValid = sql`email <> ${to} AND NOT EXISTS (
    SELECT FROM revoked_tokens WHERE user_id = users.id AND revoked_at >= ${createdAt}
  )`
  const href = await createAccountLink(email, context, 'email', isValid, to)
  if (!href) return undefined
  return {
    to,
    subject: `Is this your email address? ${name}`,
    paragraphs: [
      `Someone wants to use this email address for their account at ${name}. If it was you, confirm the address ` +
        'within seven days:',
      { text: 'Confirm the address', href },
      "If it wasn't you, ignore this email. If you confirm, a stranger's account gets your address.",
    ],
  }
}

/** Tells the owner of the current address about a requested change. */
export const emailChangeNotice: EmailTemplate<{ from: string, to: string }> = async (email, { config }) => {
  const { data: { from, to }, createdAt } = email
  const name = config.COMMUNITY_NAME
  return {
    to: from,
    subject: `Your email address at ${name} is about to change`,
    paragraphs: [
      `On ${formatTime(createdAt, config)}, you asked to change the email address of your account at ${name} to ` +
        `${to}. It will change when you open the link in our email to that address.`,
      "If this wasn't you, reset your password now with “Forgot your password?”. That also cancels the change.",
    ],
  }
}

/** Sends the link to replace a forgotten password. */
export const passwordReset: EmailTemplate = async (email, context) => {
  const { sql, config } = context
  // If an earlier copy has arrived, its link may have set a new password. A copy that comes later must not revive it.
  const isUnused = sql`${email.attempts <= 1} OR NOT EXISTS (
    SELECT FROM revoked_tokens WHERE user_id = users.id AND revoked_at >= ${email.createdAt}
  )`
  const href = await createAccountLink(email, context, 'password', sql`(${isUnused})`)
  if (!href) return undefined
  return {
    subject: `Set a new password for ${config.COMMUNITY_NAME}`,
    paragraphs: [
      `Someone asked to set a new password for your ${config.COMMUNITY_NAME} account on ` +
        `${formatTime(email.createdAt, config)}. The link works for one hour:`,
      { text: 'Set a new password', href },
      "Only the most recent link works. If you didn't ask for it, ignore this email: your password stays the same.",
    ],
  }
}

/** Tells the owner of an account that its password was changed. */
export const passwordChanged: EmailTemplate = async ({ createdAt }, { config }) => {
  const name = config.COMMUNITY_NAME
  return {
    subject: `Your password for ${name} was changed`,
    paragraphs: [
      `The password of your ${name} account was changed on ${formatTime(createdAt, config)}. ` +
        'All devices have been signed out.',
      "If this wasn't you, reset your password now with “Forgot your password?”, and contact the " +
        `admins of ${name}.`,
    ],
  }
}

/** Explains that a sign-in with the identity provider removed a password set before the address was verified. */
export const accountLinked: EmailTemplate = async (email, context) => {
  const { sql, config: { COMMUNITY_NAME: name } } = context
  const href = await createAccountLink(email, context, 'password', sql`password = ${PLACEHOLDER}`)
  if (!href) return undefined
  return {
    subject: `Your account at ${name}`,
    paragraphs: [
      `You signed in to ${name} with your identity provider. An account with your address already existed, with a ` +
        "password we couldn't confirm was yours. We removed that password and signed out everyone using the account.",
      'You can keep signing in with your identity provider. If you also want a password, set one within an hour:',
      { text: 'Set a password', href },
    ],
  }
}

/** Shows an operator that email arrives (`npm run email -- test`). */
export const test: EmailTemplate = async ({ createdAt }, { config }) => {
  const name = config.COMMUNITY_NAME
  return {
    subject: `Test email of ${name}`,
    paragraphs: [
      `This email shows that ${name} can send you emails, for example reminders of events.`,
      `An operator requested it on ${formatTime(createdAt, config)}.`,
    ],
  }
}
