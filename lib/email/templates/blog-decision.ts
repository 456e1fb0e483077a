import { excerpt } from '../../database/columns.ts'
import { sentence } from '../content.ts'
import { notification } from '../notifications.ts'

interface Decision { blog: string, status: 'PUBLISHED' | 'ARCHIVED' }

/** Tells the author that an admin has published or archived a blog post. */
export const blogDecision = notification<Decision>(async ({ id: mailId, userId, data }, { sql, config }) => {
  const { blog: id, status } = data
  const [frontend] = config.FRONTEND_URL
  const [blog] = await sql<{ title: string }[]>`
    SELECT ${excerpt(sql, sql`title`)} AS title FROM blogs
    WHERE id = ${id} AND author_id = ${userId} AND status = ${status} AND NOT EXISTS (
      -- The same decision, made again later, has an email of its own.
      SELECT FROM emails
      WHERE user_id = ${userId} AND template = 'blog-decision' AND data ->> 'blog' = ${id}
        AND data ->> 'status' = ${status} AND emails.id > ${mailId}
    )
  `
  if (!blog) return undefined
  if (status === 'ARCHIVED') {
    return {
      subject: `Your blog post has been archived: ${blog.title}`,
      paragraphs: [
        sentence`Your blog post “${blog.title}” has been archived. Only you and the admins can read it now.`,
      ],
    }
  }
  return {
    subject: `Your blog post has been published: ${blog.title}`,
    paragraphs: [
      sentence`Your blog post “${blog.title}” has been published. Anyone can read it now.`,
      ...frontend ? [{ text: 'Read it', href: `${frontend}/blogs/${id}` }] : [],
    ],
  }
})
