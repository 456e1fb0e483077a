import { notification } from '../notifications.ts'

/** Tells the author that an admin has published or archived a blog. */
export const blogDecision = notification<{ blog: string, status: 'PUBLISHED' | 'ARCHIVED' }>({
  bulk: false,
  async compose ({ id: mailId, userId, data: { blog: id, status } }, { sql, config: { FRONTEND_URL: [frontend] } }) {
    const [blog] = await sql<{ title: string }[]>`
      SELECT title FROM blogs
      WHERE id = ${id} AND author_id = ${userId} AND status = ${status} AND NOT EXISTS (
        -- A later decision has an email of its own.
        SELECT FROM emails
        WHERE user_id = ${userId} AND template = 'blog-decision' AND data ->> 'blog' = ${id} AND emails.id > ${mailId}
      )
    `
    if (!blog) return undefined
    if (status === 'ARCHIVED') {
      return {
        subject: `Your blog is archived: ${blog.title}`,
        paragraphs: [`Your blog “${blog.title}” is archived: only you and the admins can read it.`],
      }
    }
    return {
      subject: `Your blog is published: ${blog.title}`,
      paragraphs: [
        `Your blog “${blog.title}” is published: anyone can read it.`,
        ...frontend ? [{ text: 'Read it', href: `${frontend}/blogs/${id}` }] : [],
      ],
    }
  },
})
