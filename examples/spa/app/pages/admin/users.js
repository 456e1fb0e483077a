import { call, client, download } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import {
  actionButton, confirmed, count, heading, lead, nameOf, notify, onDate, openDialog, portrait, ROLES,
} from '../../parts.js'
import { refresh } from '../../router.js'
import { adminNav } from '../../shell.js'

/** @import { Schemas } from 'community-platform-client' */
/** @typedef {Schemas['ListedUser']} User */

/** All accounts, with actions. */
export async function usersPage () {
  const [{ users }, { clubs }] = await Promise.all([call(client.GET('/users')), call(client.GET('/clubs'))])
  const rows = users.map(user => ({ element: row(user, clubs), text: `${nameOf(user)} ${user.email}`.toLowerCase() }))
  const found = h('p', { class: 'hint', role: 'status' })
  const search = h('input', {
    id: 'search',
    type: 'search',
    oninput () {
      for (const { element, text } of rows) element.hidden = !text.includes(search.value.toLowerCase())
      found.replaceChildren(count(rows.filter(({ element }) => !element.hidden).length, 'person', 'people'))
    },
  })
  return [
    adminNav(),
    heading('Users', lead(`${count(users.length, 'person has', 'people have')} an account.`),
      h('p', { class: 'actions' }, actionButton('Download as a spreadsheet', () =>
        download(client.GET('/exports/users.csv', { parseAs: 'blob' }), 'users.csv')))),
    h('div', { class: 'field search' }, h('label', { for: 'search' }, 'Find by name or email'), search, found),
    h('ul', { class: 'rows' }, ...rows.map(({ element }) => element)),
  ]
}

/**
 * @param {User} user
 * @param {Schemas['Club'][]} clubs
 */
function row (user, clubs) {
  const { id, email, role, club, createdAt, _count } = user
  const describedBy = { 'aria-describedby': `user-${id}` }
  return h('li', {},
    portrait(nameOf(user)),
    h('div', {},
      h('h2', { id: `user-${id}` }, nameOf(user)),
      h('p', { class: 'meta' },
        h('span', { class: `badge ${role.toLowerCase()}` }, ROLES[role]),
        club && h('span', {}, club.name),
        h('span', {}, email)),
      h('p', { class: 'meta' },
        h('span', {}, 'since ', onDate(createdAt)),
        h('span', {}, count(_count.blogs, 'post')),
        h('span', {}, count(_count.eventRegistrations, 'registration')))),
    h('p', { class: 'actions' },
      h('button', { type: 'button', onclick: () => editUser(user, clubs), ...describedBy }, 'Edit'),
      h('button', { type: 'button', onclick: () => changeRole(user), ...describedBy }, 'Role'),
      actionButton('Delete', async () => {
        if (!await confirmed(`Delete ${nameOf(user)}?`, whatIsLeft(user), 'Delete')) return
        await call(client.DELETE('/users/{id}', { params: { path: { id } } }))
        await done(`${nameOf(user)} has been deleted.`)
      }, { class: 'danger', ...describedBy })))
}

/** @param {User} user */
function whatIsLeft ({ _count: { blogs, eventRegistrations } }) {
  if (blogs + eventRegistrations === 0) return "You can't undo this."
  return `This account has ${count(blogs, 'post')} and ${count(eventRegistrations, 'registration')}. ` +
    'The service deletes only accounts without posts and registrations.'
}

/**
 * @param {User} user
 * @param {Schemas['Club'][]} clubs
 */
async function editUser (user, clubs) {
  const saved = await openDialog('Edit user', close => [form({
    fields: [
      { name: 'firstName', label: 'First name', value: user.firstName },
      { name: 'lastName', label: 'Last name', value: user.lastName, optional: !user.lastName },
      { name: 'email', label: 'Email', type: 'email', value: user.email },
      {
        name: 'clubId',
        label: 'Member of',
        type: 'select',
        value: user.clubId ?? '',
        options: [['', 'No club'], ...clubs.map(({ id, name }) => /** @type {[string, string]} */ ([id, name]))],
      },
    ],
    verb: 'Save',
    cancel: close,
    isEdit: true,
    async send ({ clubId, ...names }) {
      const body = { ...names, ...clubId !== undefined && { clubId: clubId || null } }
      await call(client.PUT('/users/{id}', { params: { path: { id: user.id } }, body }))
      close(nameOf({ ...user, ...names }))
    },
  })])
  if (saved) await done(`${saved} has been saved.`)
}

/** @param {User} user */
async function changeRole (user) {
  const saved = await openDialog(`Role of ${nameOf(user)}`, close => [form({
    fields: [{
      name: 'newRole',
      label: 'Role',
      type: 'select',
      value: user.role,
      hint: 'The new role applies from their next sign-in.',
      options: Object.entries(ROLES),
    }],
    verb: 'Save',
    cancel: close,
    isEdit: true,
    async send ({ newRole }) {
      await call(client.PUT('/users/{userId}/role', {
        params: { path: { userId: user.id } }, body: { newRole: /** @type {Schemas['Role']} */ (newRole) },
      }))
      close(newRole)
    },
  })])
  if (saved) await done(`The role of ${nameOf(user)} is now ${ROLES[saved]}.`)
}

/** @param {string} message */
async function done (message) {
  await refresh()
  notify(message)
}
