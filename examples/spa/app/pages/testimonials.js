import { call, client } from '../api.js'
import { h } from '../dom.js'
import { follow, isSame } from '../live.js'
import { heading, lead, nothing, pager } from '../parts.js'
import { pageOf } from '../router.js'
import { quote } from './home.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../router.js' */

const LIMIT = 4

/** @param {Visit} visit */
export async function testimonialsPage ({ query }) {
  const first = await testimonials(pageOf(query), LIMIT)
  const { items, page, pages } = first
  const search = new URLSearchParams({ page: String(page), limit: String(LIMIT) })
  const hint = follow([`/testimonials?${search}`], async () => isSame(first, await testimonials(page, LIMIT)))
  return [
    heading('Testimonials', lead('What former students say.')),
    hint,
    items.length === 0 ? nothing('This page is empty.') : h('div', { class: 'quotes' }, ...items.map(quote)),
    pager(page, pages, page => `/testimonials?page=${page}`),
  ].filter(node => node !== null)
}

/**
 * A page of testimonials. After the last page, returns the last page, because its last testimonial may be deleted.
 *
 * @param {number} page
 * @param {number} limit
 * @returns {Promise<{ items: Schemas['Testimonial'][], page: number, pages: number }>}
 */
export async function testimonials (page, limit) {
  const { items, total } = await call(client.GET('/testimonials', {
    params: { query: { page: String(page), limit: String(limit) } },
  }))
  const pages = Math.max(1, Math.ceil(total / limit))
  return page > pages ? testimonials(pages, limit) : { items, page, pages }
}
