import { createAccountLink } from '../../auth/secret-tokens.ts'
import { formatTime, type MailKind } from '../message.ts'

/** The link for a forgotten password. */
export const passwordReset: MailKind = {
  bulk: false,
  async compose (mail, context) {
    const { sql, config } = context
    const href = await createAccountLink(mail, context, 'password', sql`true`)
    if (!href) return undefined
    return {
      subject: `Set a new password for ${config.COMMUNITY_NAME}`,
      paragraphs: [
        `A new password for your account at ${config.COMMUNITY_NAME} was asked for on ` +
          `${formatTime(mail.createdAt, config)}. You can set one within an hour:`,
        { text: 'Set a new password', href },
        'Only the link in the latest of such mails works. If you did not ask for it, please ignore this mail: your ' +
          'password stays as it is.',
      ],
    }
  },
}
