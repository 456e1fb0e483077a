import { formatTime, type MailKind } from '../message.ts'

/** Tells the owner of an account that it has another password. */
export const passwordChanged: MailKind = {
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
