import { formatTime, type MailKind } from '../message.ts'

/** `npm run mail -- test`: shows an operator that mail arrives. */
export const test: MailKind = {
  bulk: false,
  async compose ({ createdAt }, { config }) {
    const name = config.COMMUNITY_NAME
    return {
      subject: `Test mail of ${name}`,
      paragraphs: [
        `This mail shows that ${name} can send mail to you.`,
        `An operator asked for it on ${formatTime(createdAt, config)}.`,
      ],
    }
  },
}
