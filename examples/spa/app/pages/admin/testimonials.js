import { call, client } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import { actionButton, confirmed, heading, lead, nothing, notify, openDialog, pager, portrait } from '../../parts.js'
import { refresh } from '../../router.js'
import { adminNav } from '../../shell.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../../router.js' */
/** @typedef {Schemas['Testimonial']} Testimonial */

/** @param {Visit} visit */
export async function testimonialsAdminPage ({ query }) {
  const { items, page, limit, total } = await call(client.GET('/testimonials', {
    params: { query: { page: query.get('page') ?? '1' } },
  }))
  return [
    adminNav(),
    heading('Voices', lead('What people say who were here before.')),
    h('p', {}, h('button', { type: 'button', class: 'primary', onclick: () => editTestimonial() }, 'New voice')),
    items.length === 0 ? nothing('There is nothing on this page.') : h('ul', { class: 'rows' }, ...items.map(row)),
    pager(page, Math.ceil(total / limit), page => `/admin/testimonials?page=${page}`),
  ].filter(node => node !== null)
}

/** @param {Testimonial} testimonial */
function row (testimonial) {
  const { id, name, batchYear, content, imageUrl } = testimonial
  const describedBy = { 'aria-describedby': `voice-${id}` }
  return h('li', {},
    portrait(name, imageUrl),
    h('div', {},
      h('h2', { id: `voice-${id}` }, name),
      h('p', { class: 'meta' }, `class of ${batchYear}`),
      h('p', {}, content)),
    h('p', { class: 'actions' },
      h('button', { type: 'button', onclick: () => editTestimonial(testimonial), ...describedBy }, 'Edit'),
      actionButton('Delete', async () => {
        if (!await confirmed(`Delete what ${name} said?`, 'It cannot be brought back.', 'Delete')) return
        await call(client.DELETE('/testimonials/{id}', { params: { path: { id } } }))
        await done(`What ${name} said is deleted.`)
      }, { class: 'danger', ...describedBy })))
}

/** @param {Testimonial} [testimonial] to change; without it, a new one is created */
async function editTestimonial (testimonial) {
  const saved = await openDialog(testimonial ? 'Edit voice' : 'New voice', close => [form({
    fields: [
      { name: 'name', label: 'Name', value: testimonial?.name },
      {
        name: 'batchYear',
        label: 'Class of',
        type: 'number',
        value: testimonial?.batchYear,
        hint: 'The year in which they left.',
      },
      { name: 'content', label: 'What they say', type: 'textarea', value: testimonial?.content },
      {
        name: 'imageUrl', label: 'Address of a portrait', type: 'url', optional: true, value: testimonial?.imageUrl,
      },
    ],
    verb: 'Save',
    cancel: close,
    isEdit: Boolean(testimonial),
    async send ({ batchYear, ...values }) {
      const body = { ...values, ...batchYear !== undefined && { batchYear: Number(batchYear) } }
      const params = testimonial && { path: { id: testimonial.id } }
      if (params) await call(client.PUT('/testimonials/{id}', { params, body }))
      else await call(client.POST('/testimonials', { body: /** @type {Schemas['NewTestimonial']} */ (body) }))
      close(values.name ?? testimonial?.name)
    },
  })])
  if (saved) await done(`What ${saved} says is saved.`)
}

/** @param {string} message */
async function done (message) {
  await refresh()
  notify(message)
}
