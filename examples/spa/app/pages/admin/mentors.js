import { call, client } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import {
  actionButton, confirmed, count, heading, inColour, lead, nothing, notify, openDialog, portrait, REPLACED,
} from '../../parts.js'
import { refresh } from '../../router.js'
import { adminNav } from '../../shell.js'

/** @import { Schemas } from 'community-platform-client' */
/** @typedef {Schemas['MentorProfile']} Mentor */
/** @typedef {Schemas['NewMentor']} NewMentor */

export async function mentorsAdminPage () {
  const [{ mentors }, { clubs }] = await Promise.all([call(client.GET('/mentors')), call(client.GET('/clubs'))])
  return [
    adminNav(),
    heading('Mentors', lead('Each mentor belongs to a club.')),
    h('p', {}, h('button', { type: 'button', class: 'primary', onclick: () => editMentor(clubs) }, 'New mentor')),
    mentors.length === 0
      ? nothing('There are no mentors yet.')
      : h('ul', { class: 'rows' }, ...mentors.map(mentor => row(mentor, clubs))),
  ]
}

/**
 * @param {Mentor} mentor
 * @param {Schemas['Club'][]} clubs
 */
function row (mentor, clubs) {
  const { id, name, expertise, imageUrl, club, likeCount } = mentor
  const describedBy = { 'aria-describedby': `mentor-${id}` }
  return inColour(club.name, h('li', {},
    portrait(name, imageUrl),
    h('div', {},
      h('h2', { id: `mentor-${id}` }, name),
      h('p', { class: 'meta' }, h('span', { class: 'club' }, club.name), h('span', {}, expertise),
        h('span', {}, count(likeCount, 'like')))),
    h('p', { class: 'actions' },
      h('button', { type: 'button', onclick: () => editMentor(clubs, mentor), ...describedBy }, 'Edit'),
      actionButton('Delete', async () => {
        if (!await confirmed(`Delete ${name}?`, `This also deletes ${count(likeCount, 'like')}.`, 'Delete')) return
        await call(client.DELETE('/mentors/{id}', { params: { path: { id } } }))
        await done(`${name} has been deleted.`)
      }, { class: 'danger', ...describedBy }))))
}

/**
 * @param {Schemas['Club'][]} clubs
 * @param {Mentor} [mentor] the mentor to change; if missing, creates a mentor
 */
async function editMentor (clubs, mentor) {
  const saved = await openDialog(mentor ? 'Edit mentor' : 'New mentor', close => [form({
    fields: [
      { name: 'name', label: 'Name', value: mentor?.name },
      { name: 'expertise', label: 'Expertise', value: mentor?.expertise, hint: 'For example, career advice.' },
      {
        name: 'clubId',
        label: 'Club',
        type: 'select',
        value: mentor?.clubId,
        options: clubs.map(({ id, name }) => [id, name]),
      },
      {
        name: 'imageUrl',
        label: 'Photo',
        type: 'picture',
        value: mentor?.imageUrl,
        hint: mentor && REPLACED,
      },
      { name: 'networkUrl', label: 'Profile URL', type: 'url', optional: true, value: mentor?.networkUrl },
    ],
    verb: 'Save',
    cancel: close,
    draft: mentor ? `mentor ${mentor.id}` : 'new mentor',
    isEdit: Boolean(mentor),
    async send (values, once) {
      if (mentor) await call(client.PUT('/mentors/{id}', { params: { path: { id: mentor.id } }, body: values }))
      else await call(client.POST('/mentors', { params: { header: once }, body: /** @type {NewMentor} */ (values) }))
      close(values.name ?? mentor?.name)
    },
  })])
  if (saved) await done(`${saved} has been saved.`)
}

/** @param {string} message */
async function done (message) {
  await refresh()
  notify(message)
}
