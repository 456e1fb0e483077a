import { call, client } from '../api.js'
import { h } from '../dom.js'
import { follow, isSame } from '../live.js'
import { cover, heading, lead, nameOf, nothing, onDate, portrait, statusBadge } from '../parts.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */

/** Length of the excerpt on a card, in characters. */
const EXCERPT = 140

export async function blogsPage () {
  const { blogs } = await call(client.GET('/blogs'))
  const hint = follow(['/blogs'], async () => isSame(blogs, (await call(client.GET('/blogs'))).blogs))
  return [
    heading('Blog', lead('Posts by students, reviewed by the admins.')),
    hint,
    blogs.length === 0
      ? nothing('No posts have been published yet.')
      : h('ul', { class: 'cards' }, ...blogs.map(blog => blogCard(blog))),
    h('p', {}, h('a', { class: 'button', href: '/me/submit' }, 'Write a post')),
  ]
}

/**
 * @param {Schemas['BlogWithAuthor']} blog
 * @param {'h2' | 'h3'} [level]
 */
export function blogCard ({ id, title, content, imageUrl, createdAt, author }, level = 'h2') {
  return h('li', { class: 'card' },
    cover(title, imageUrl, { wide: true }),
    h(level, {}, h('a', { href: `/blogs/${id}` }, title)),
    h('p', {}, excerpt(content)),
    h('p', { class: 'meta' }, portrait(nameOf(author), author.avatar), nameOf(author), onDate(createdAt)))
}

const WORDS = new Intl.Segmenter(undefined, { granularity: 'word' })
const LETTERS = new Intl.Segmenter()

/**
 * Returns the first words of a text, or part of a very long first word. Some scripts do not separate words by spaces.
 *
 * @param {string} content
 */
function excerpt (content) {
  if (content.length <= EXCERPT) return content
  const start = content.slice(0, EXCERPT + 1)
  const words = [...WORDS.segment(start)]
  // The last segment may be incomplete.
  const end = (words.length > 1 ? words : [...LETTERS.segment(start)]).at(-1)?.index
  return `${start.slice(0, end).replace(/[\s\p{P}]+$/u, '')}\u00a0…`
}

/**
 * A blog post as plain text. HTML in the post is shown as text.
 *
 * @param {Visit} visit
 */
export async function blogPage ({ parts: [id = ''] }) {
  const load = () => call(client.GET('/blogs/{id}', { params: { path: { id } } }))
  const { blog } = await load()
  const { title, content, imageUrl, status, createdAt, author } = blog
  // Only published posts are in the public list.
  const hint = status === 'PUBLISHED' && follow(['/blogs'], async () => isSame(blog, (await load()).blog))
  return [h('article', { class: 'reading' },
    cover(title, imageUrl, { wide: true, large: true }),
    heading(title, h('p', { class: 'byline' }, portrait(nameOf(author), author.avatar),
      h('span', {}, h('b', {}, nameOf(author)), onDate(createdAt)),
      status !== 'PUBLISHED' && statusBadge(status))),
    hint,
    ...content.split(/\n\s*\n/).map(paragraph => h('p', {}, paragraph)),
    h('p', {}, h('a', { href: '/blogs' }, '← All posts')))]
}
