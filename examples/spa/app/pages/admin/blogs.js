import { call, client } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import {
  actionButton, confirmed, heading, lead, nameOf, nothing, notify, onDate, openDialog, REPLACED, statusBadge, STATUSES,
} from '../../parts.js'
import { here, refresh } from '../../router.js'
import { adminNav } from '../../shell.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../../router.js' */

const FILTERS = [['', 'All'], ['DRAFT', 'Drafts'], ['PUBLISHED', 'Published'], ['ARCHIVED', 'Archived']]

/**
 * All blog posts, including drafts, with actions.
 *
 * @param {Visit} visit
 */
export async function moderationPage ({ query }) {
  const { blogs } = await call(client.GET('/blogs/admin'))
  const wanted = query.get('status') ?? ''
  const shown = blogs.filter(({ status }) => !wanted || status === wanted)
  return [
    adminNav(),
    heading('Blog', lead('Publish drafts, and edit, archive or delete posts.')),
    h('div', { class: 'tools' },
      h('nav', { class: 'switch', 'aria-label': 'Status' }, ...FILTERS.map(([status, words]) => h('a', {
        href: status ? `/admin/blogs?status=${status}` : '/admin/blogs', 'aria-current': wanted === status && 'true',
      }, `${words} ${blogs.filter(blog => !status || blog.status === status).length}`))),
      h('button', { type: 'button', class: 'primary', onclick: () => editBlog() }, 'New post')),
    shown.length === 0 ? nothing('No posts have this status.') : h('ul', { class: 'rows' }, ...shown.map(row)),
  ]
}

/** @param {Schemas['BlogWithAuthorName']} blog */
function row ({ id, title, status, author, createdAt }) {
  const params = { path: { id } }
  const describedBy = { 'aria-describedby': `blog-${id}` }
  return h('li', {},
    h('div', {},
      h('h2', { id: `blog-${id}` }, h('a', { href: `/blogs/${id}` }, title)),
      h('p', { class: 'meta' }, statusBadge(status), nameOf(author), onDate(createdAt))),
    h('p', { class: 'actions' },
      status !== 'PUBLISHED' && actionButton('Approve', async () => {
        await call(client.POST('/blogs/{id}/approve', { params }))
        await done(`“${title}” has been published.`)
      }, { class: 'primary', ...describedBy }),
      status !== 'ARCHIVED' && actionButton('Archive', async () => {
        await call(client.POST('/blogs/{id}/archive', { params }))
        await done(`“${title}” has been archived.`)
      }, describedBy),
      actionButton('Edit', async () => {
        const page = here()
        // Not the post of the list, which a different admin may have changed.
        const { blog } = await call(client.GET('/blogs/{id}', { params }))
        if (here() === page) editBlog(blog)
      }, describedBy),
      actionButton('Delete', async () => {
        if (!await confirmed(`Delete “${title}”?`, "You can't undo this.", 'Delete')) return
        await call(client.DELETE('/blogs/{id}', { params }))
        await done(`“${title}” has been deleted.`)
      }, { class: 'danger', ...describedBy })))
}

/** @param {Schemas['Blog']} [blog] the post to change; if missing, creates a post */
async function editBlog (blog) {
  const saved = await openDialog(blog ? 'Edit post' : 'New post', close => [form({
    fields: [
      { name: 'title', label: 'Title', value: blog?.title },
      { name: 'content', label: 'Text', type: 'textarea', value: blog?.content },
      {
        name: 'imageUrl',
        label: 'Picture',
        type: 'picture',
        optional: !blog?.imageUrl,
        value: blog?.imageUrl,
        hint: blog?.imageUrl ? REPLACED : undefined,
      },
      {
        name: 'status',
        label: 'Status',
        type: 'select',
        value: blog?.status,
        options: Object.entries(STATUSES),
      },
    ],
    verb: 'Save',
    cancel: close,
    draft: blog ? `post ${blog.id}` : 'new post',
    isEdit: Boolean(blog),
    async send ({ imageUrl, ...values }, once) {
      const body = { ...values, ...(blog ? imageUrl !== undefined : imageUrl) && { imageUrl } }
      if (blog) await call(client.PUT('/blogs/{id}', { params: { path: { id: blog.id } }, body }))
      else {
        await call(client.POST('/blogs', {
          params: { header: once }, body: /** @type {Schemas['NewBlog']} */ (body),
        }))
      }
      close(values.title ?? blog?.title)
    },
  })])
  if (saved) await done(`“${saved}” has been saved.`)
}

/** @param {string} message */
async function done (message) {
  await refresh()
  notify(message)
}
