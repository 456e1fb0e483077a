import { createAccountLink } from '../../auth/secret-tokens.ts'
import type { MailKind } from '../message.ts'

/** Asks the owner of the address to prove it. */
export const emailVerification: MailKind = {
  bulk: false,
  async compose (mail, context) {
    const { sql, config: { COMMUNITY_NAME: name } } = context
    const href = await createAccountLink(mail, context, 'email', sql`email_verified_at IS NULL`)
    if (!href) return undefined
    return {
      subject: `Is this your email address? ${name}`,
      paragraphs: [
        `There is an account at ${name} with this email address. If it is yours, please confirm it within seven days:`,
        { text: 'Confirm the address', href },
        'If you have not registered there, please ignore this mail: to confirm the address would leave the account ' +
          'to the one who has.',
      ],
    }
  },
}
