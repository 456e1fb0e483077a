import { printable } from '../../formats.ts'
import { notification } from '../notifications.ts'

interface EventMessage {
  subject: string
  text: string
  title: string
  name: string
  /** `null` until it is a proven address. */
  email: string | null
}

/** A message of those who hold the event to all who are registered for it. */
export const eventMessage = notification<{ message: string }>({
  bulk: true,
  async compose ({ userId, data }, { sql }) {
    const [message] = await sql<EventMessage[]>`
      SELECT
        subject, text, title, concat_ws(' ', first_name, last_name) AS name,
        CASE WHEN email_verified_at IS NOT NULL THEN email END AS email
      FROM event_messages
        JOIN events ON events.id = event_messages.event_id
        JOIN event_registrations ON event_registrations.event_id = events.id
        JOIN users ON users.id = sender_id
      WHERE event_messages.id = ${data.message} AND user_id = ${userId}
    `
    if (!message) return undefined
    const { subject, text, title, name, email } = message
    return {
      subject,
      paragraphs: [
        `${name} writes to all who are registered for “${title}”:`,
        ...printable(text).split('\n').filter(line => line.trim()),
      ],
      ...email !== null && { replyTo: { name, address: email } },
    }
  },
})
