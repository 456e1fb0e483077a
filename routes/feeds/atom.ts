import XMLBuilder from 'fast-xml-builder'

import type { BodyFormat } from '../../lib/cache/index.ts'
import { escapeHtml, paragraphsOf, printableLine } from '../../lib/values/formats.ts'

/** A post in a feed. */
interface FeedBlog {
  id: string
  title: string
  content: string
  author: string
  /** Date-times, for example `2026-01-31T09:30:00.000Z`. */
  publishedAt: string
  updatedAt: string
}

/** `updated` of an empty feed, because Atom requires a date. */
const NEVER = '1970-01-01T00:00:00Z'

/** `id` of the feed if FRONTEND_URL is not set. */
const NOWHERE = 'urn:uuid:0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'

const ATTRIBUTE = '@'

const xml = new XMLBuilder({ ignoreAttributes: false, attributeNamePrefix: ATTRIBUTE, suppressEmptyNode: true })

const END = '</feed>'

/**
 * Atom (RFC 4287): a feed of posts, with links to the app if FRONTEND_URL is set, and a link to itself (§ 4.1.1) if the
 * service knows its own URL.
 */
export const atom = (
  link: string | undefined, self: string | null
): BodyFormat<{ updated: string | null }, FeedBlog> => ({
  contentType: 'application/atom+xml; charset=utf-8',
  * write ({ updated }, blogs) {
    yield xml.build(feed(updated, link, self)).slice(0, -END.length)
    for (const blog of blogs) yield xml.build({ entry: entry(blog, link) })
    yield END
  },
})

const feed = (updated: string | null, link: string | undefined, self: string | null) => ({
  '?xml': attributes({ version: '1.0', encoding: 'utf-8' }),
  feed: {
    ...attributes({ xmlns: 'http://www.w3.org/2005/Atom' }),
    id: link ?? NOWHERE,
    title: 'Blogs',
    updated: updated ?? NEVER,
    link: [
      ...link ? [attributes({ rel: 'alternate', href: link })] : [],
      ...self ? [attributes({ rel: 'self', type: 'application/atom+xml', href: self })] : [],
    ],
  },
})

const entry = ({ id, title, content, author, publishedAt, updatedAt }: FeedBlog, link: string | undefined) => ({
  id: `urn:uuid:${id}`,
  title: { ...attributes({ type: 'text' }), '#text': printableLine(title) },
  published: publishedAt,
  updated: updatedAt,
  author: { name: printableLine(author) },
  ...link && { link: attributes({ rel: 'alternate', href: `${link}/${id}` }) },
  content: { ...attributes({ type: 'html' }), '#text': paragraphsOf(content).map(toHtml).join('') },
})

/** A paragraph of plain text as HTML, which the feed escapes once more. A reader shows it as the app does. */
const toHtml = (lines: string[]) => `<p dir="auto">${lines.map(escapeHtml).join('<br>')}</p>`

const attributes = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`${ATTRIBUTE}${name}`, value]))
