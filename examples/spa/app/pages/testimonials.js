import { call, client } from '../api.js'
import { h } from '../dom.js'
import { heading, lead, nothing, pager } from '../parts.js'
import { quote } from './home.js'

/** @import { Visit } from '../router.js' */

const LIMIT = 4

/** @param {Visit} visit */
export async function testimonialsPage ({ query }) {
  const { items, page, limit, total } = await call(client.GET('/testimonials', {
    params: { query: { page: query.get('page') ?? '1', limit: String(LIMIT) } },
  }))
  return [
    heading('Testimonials', lead('What former students say.')),
    items.length === 0 ? nothing('This page is empty.') : h('div', { class: 'quotes' }, ...items.map(quote)),
    pager(page, Math.ceil(total / limit), page => `/testimonials?page=${page}`),
  ].filter(node => node !== null)
}
