import { call, client } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import { actionButton, confirmed, heading, lead, nothing, notify, openDialog, pager, portrait } from '../../parts.js'
import { pageOf, refresh } from '../../router.js'
import { adminNav } from '../../shell.js'
import { testimonials } from '../testimonials.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../../router.js' */
/** @typedef {Schemas['Testimonial']} Testimonial */
/** @typedef {Schemas['NewTestimonial']} NewTestimonial */

/** Number of testimonials per page. */
const LIMIT = 10

/** @param {Visit} visit */
export async function testimonialsAdminPage ({ query }) {
  const { items, page, pages } = await testimonials(pageOf(query), LIMIT)
  return [
    adminNav(),
    heading('Testimonials', lead('What former students say.')),
    h('p', {}, h('button', { type: 'button', class: 'primary', onclick: () => editTestimonial() }, 'New testimonial')),
    items.length === 0 ? nothing('This page is empty.') : h('ul', { class: 'rows' }, ...items.map(row)),
    pager(page, pages, page => `/admin/testimonials?page=${page}`),
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
        if (!await confirmed(`Delete the testimonial by ${name}?`, "You can't undo this.", 'Delete')) return
        await call(client.DELETE('/testimonials/{id}', { params: { path: { id } } }))
        await done(`The testimonial by ${name} has been deleted.`)
      }, { class: 'danger', ...describedBy })))
}

/** @param {Testimonial} [testimonial] the testimonial to change; if missing, creates a testimonial */
async function editTestimonial (testimonial) {
  const saved = await openDialog(testimonial ? 'Edit testimonial' : 'New testimonial', close => [form({
    fields: [
      { name: 'name', label: 'Name', value: testimonial?.name },
      {
        name: 'batchYear',
        label: 'Class of',
        type: 'number',
        value: testimonial?.batchYear,
        hint: 'The year in which they graduated, for example 2021.',
      },
      { name: 'content', label: 'Text', type: 'textarea', value: testimonial?.content },
      {
        name: 'imageUrl', label: 'Photo', type: 'picture', optional: true, value: testimonial?.imageUrl,
      },
    ],
    verb: 'Save',
    cancel: close,
    draft: testimonial ? `testimonial ${testimonial.id}` : 'new testimonial',
    isEdit: Boolean(testimonial),
    async send ({ batchYear, ...values }, once) {
      const body = { ...values, ...batchYear !== undefined && { batchYear: Number(batchYear) } }
      const created = /** @type {NewTestimonial} */ (body)
      if (testimonial) await call(client.PUT('/testimonials/{id}', { params: { path: { id: testimonial.id } }, body }))
      else await call(client.POST('/testimonials', { params: { header: once }, body: created }))
      close(values.name ?? testimonial?.name)
    },
  })])
  if (saved) await done(`The testimonial by ${saved} has been saved.`)
}

/** @param {string} message */
async function done (message) {
  await refresh()
  notify(message)
}
