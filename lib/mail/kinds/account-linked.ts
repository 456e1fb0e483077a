import { createAccountLink } from '../../auth/secret-tokens.ts'
import { PLACEHOLDER } from '../../auth/passwords.ts'
import type { MailKind } from '../message.ts'

/** The sign-in with the provider has ended a password that was set before the email was proven. */
export const accountLinked: MailKind = {
  bulk: false,
  async compose (mail, context) {
    const { sql, config: { COMMUNITY_NAME: name } } = context
    const href = await createAccountLink(mail, context, 'password', sql`password = ${PLACEHOLDER}`)
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
