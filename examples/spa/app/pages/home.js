import { call, client } from '../api.js'
import { NAME } from '../config.js'
import { h } from '../dom.js'
import { follow, isSame } from '../live.js'
import { cover, lead, nothing, portrait } from '../parts.js'
import { currentUser } from '../session.js'
import { blogCard } from './blogs.js'
import { eventLines } from './events.js'

/** Upcoming events, the latest blog posts and some testimonials. */
export async function homePage () {
  const load = () => Promise.all([
    call(client.GET('/agenda', { params: { query: { limit: '4' } } })),
    call(client.GET('/blogs')),
    call(client.GET('/testimonials', { params: { query: { limit: '2' } } })),
  ])
  const [{ events: coming }, { blogs }, { items }] = await load()
  const { element, update } = eventLines(coming)
  const hint = follow(['/agenda?limit=4', '/blogs', '/testimonials?limit=2'], async () => {
    const [{ events }, ...others] = await load()
    return update(events) && isSame([{ blogs }, items], [others[0], others[1].items])
  })
  const user = currentUser()
  return [
    hint,
    h('header', { class: 'hero' },
      h('div', {},
        h('h1', { tabindex: '-1' }, user ? `Good to see you, ${user.firstName}` : 'Find your people'),
        lead('Join clubs, go to events and read the stories behind them.'),
        h('p', { class: 'actions' },
          h('a', { class: 'button primary', href: '/events' }, 'See all events'),
          user
            ? h('a', { class: 'button', href: '/me/submit' }, 'Write a post')
            : h('a', { class: 'button', href: '/register' }, 'Join the community'))),
      cover(NAME, null)),
    h('section', { 'aria-labelledby': 'soon' },
      h('h2', { id: 'soon' }, 'Upcoming events'),
      coming.length === 0
        ? nothing('No events are planned at the moment.')
        : element),
    h('section', { 'aria-labelledby': 'read' },
      h('h2', { id: 'read' }, 'Latest posts'),
      blogs.length === 0
        ? nothing('No posts have been published yet.')
        : h('ul', { class: 'cards' }, ...blogs.slice(0, 3).map(blog => blogCard(blog, 'h3')))),
    items.length > 0 && h('section', { 'aria-labelledby': 'voices' },
      h('h2', { id: 'voices' }, 'Testimonials'),
      h('div', { class: 'quotes' }, ...items.map(quote))),
  ].filter(node => node !== false)
}

/**
 * Shows a testimonial as a figure.
 *
 * @param {import('community-platform-client').Schemas['Testimonial']} testimonial
 */
export function quote ({ name, batchYear, content, imageUrl }) {
  return h('figure', { class: 'quote' },
    h('blockquote', {}, h('p', {}, content)),
    h('figcaption', {}, portrait(name, imageUrl), h('span', {}, h('b', {}, name), `class of ${batchYear}`)))
}
