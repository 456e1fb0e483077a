import { PLACEHOLDER } from '../../auth/passwords.ts'
import { createAccountLink } from '../account-links.ts'
import { formatTime, type EmailTemplate } from '../message.ts'

/** Asks the owner of the address to verify it. */
export const emailVerification: EmailTemplate = {
  bulk: false,
  async compose (email, context) {
    const { sql, config: { COMMUNITY_NAME: name } } = context
    const href = await createAccountLink(email, context, 'email', sql`email_verified_at IS NULL`)
    if (!href) return undefined
    return {
      subject: `Is this your email address? ${name}`,
      paragraphs: [
        `There is an account at ${name} with this email address. If it is yours, please confirm it within seven days:`,
        { text: 'Confirm the address', href },
        'Until then you get no other emails about events and posts, such as reminders.',
        'If you have not registered there, please ignore this email: to confirm the address would leave the account ' +
          'to the one who has.',
      ],
    }
  },
}

/** Tells the owner of the former address that an admin has given the account another one. */
export const emailChanged: EmailTemplate<{ to: string }> = {
  bulk: false,
  async compose ({ data: { to }, createdAt }, { config }) {
    const name = config.COMMUNITY_NAME
    return {
      to,
      subject: `Your email address at ${name} was changed`,
      paragraphs: [
        `An admin of ${name} has changed the email address of your account on ${formatTime(createdAt, config)}. ` +
          'Emails about your account go to the new address, and no others until it is confirmed.',
        'If you do not know about that, please tell those who run the platform.',
      ],
    }
  },
}

/** Asks the owner of another address whether an account may have it. */
export const emailChange: EmailTemplate<{ to: string }> = {
  bulk: false,
  async compose (email, context) {
    const { sql, config: { COMMUNITY_NAME: name } } = context
    const { data: { to }, createdAt } = email
    // A new password, and a sign-out everywhere, also end the change.
    const isWanted = sql`NOT EXISTS (
      SELECT FROM revoked_tokens WHERE user_id = users.id AND revoked_at >= ${createdAt}
    )`
    const href = await createAccountLink(email, context, 'email', isWanted, to)
    if (!href) return undefined
    return {
      to,
      subject: `Is this your email address? ${name}`,
      paragraphs: [
        `Someone with an account at ${name} wants to use this email address for it. If it was you, please confirm it ` +
          'within seven days:',
        { text: 'Confirm the address', href },
        'If it wasn’t you, ignore this email. Confirming would give your address to their account.',
      ],
    }
  },
}

/** Tells the owner of the present address that the account is to get another one. */
export const emailChangeNotice: EmailTemplate<{ from: string, to: string }> = {
  bulk: false,
  async compose ({ data: { from, to }, createdAt }, { config }) {
    const name = config.COMMUNITY_NAME
    return {
      to: from,
      subject: `Your email address at ${name} is about to change`,
      paragraphs: [
        `On ${formatTime(createdAt, config)}, you asked to change the email address of your account at ${name} to ` +
          `${to}. It changes as soon as the link that we sent there is opened.`,
        'If this wasn’t you, set a new password with “forgot password” now: then that link no longer works.',
      ],
    }
  },
}

/** The link for a forgotten password. */
export const passwordReset: EmailTemplate = {
  bulk: false,
  async compose (email, context) {
    const { sql, config } = context
    const href = await createAccountLink(email, context, 'password', sql`true`)
    if (!href) return undefined
    return {
      subject: `Set a new password for ${config.COMMUNITY_NAME}`,
      paragraphs: [
        `A new password for your account at ${config.COMMUNITY_NAME} was asked for on ` +
          `${formatTime(email.createdAt, config)}. You can set one within an hour:`,
        { text: 'Set a new password', href },
        'Only the link in the latest of such emails works. If you did not ask for it, please ignore this email: your ' +
          'password stays as it is.',
      ],
    }
  },
}

/** Tells the owner of an account that it has another password. */
export const passwordChanged: EmailTemplate = {
  bulk: false,
  async compose ({ createdAt }, { config }) {
    const name = config.COMMUNITY_NAME
    return {
      subject: `Your password for ${name} was changed`,
      paragraphs: [
        `The password of your account at ${name} was changed on ${formatTime(createdAt, config)}, and all who were ` +
          'signed in to it are signed out.',
        'If that was not you, set another one with “forgot password” at once, and tell those who run the platform.',
      ],
    }
  },
}

/** The sign-in with the provider has ended a password that was set before the email was verified. */
export const accountLinked: EmailTemplate = {
  bulk: false,
  async compose (email, context) {
    const { sql, config: { COMMUNITY_NAME: name } } = context
    const href = await createAccountLink(email, context, 'password', sql`password = ${PLACEHOLDER}`)
    if (!href) return undefined
    return {
      subject: `Your account at ${name}`,
      paragraphs: [
        `You have signed in to ${name} with your identity provider. Your email address had an account before, with a ` +
          'password, and it was not known whether you had set it. That password does not work any more, and all who ' +
          'were signed in to the account are signed out.',
        'You can go on signing in with your identity provider. To sign in with a password as well, set a new one ' +
          'within an hour:',
        { text: 'Set a password', href },
      ],
    }
  },
}

/** `npm run email -- test`: shows an operator that email arrives. */
export const test: EmailTemplate = {
  bulk: false,
  async compose ({ createdAt }, { config }) {
    const name = config.COMMUNITY_NAME
    return {
      subject: `Test email of ${name}`,
      paragraphs: [
        `This email shows that ${name} can send email to you.`,
        `An operator asked for it on ${formatTime(createdAt, config)}.`,
      ],
    }
  },
}
