import { call, client, download } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import {
  actionButton, confirmed, count, heading, lead, nameOf, notify, onDate, openDialog, pager, portrait, ROLES,
} from '../../parts.js'
import { pageOf, refresh, setAddress } from '../../router.js'
import { adminNav } from '../../shell.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Visit } from '../../router.js' */
/** @typedef {Schemas['ListedUser']} User */

/** Number of people per page. */
const LIMIT = 50

/**
 * All accounts, with actions. The address contains what the admin looks for, so that it stays after an action.
 *
 * @param {Visit} visit
 */
export async function usersPage ({ query }) {
  const [{ users }, { clubs }] = await Promise.all([call(client.GET('/users')), call(client.GET('/clubs'))])
  const list = h('ul', { class: 'rows' })
  const found = h('p', { class: 'hint', role: 'status' })
  const pages = h('div')
  const search = h('input', { id: 'search', type: 'search', value: query.get('search'), oninput: look })
  const role = select('role', 'Role', [['', 'All roles'], ...Object.entries(ROLES)])
  const club = select('club', 'Club', [['', 'All clubs'], ['none', 'No club'], ...options(clubs)])
  show(pageOf(query))
  return [
    adminNav(),
    heading('Users', lead(`${count(users.length, 'person has', 'people have')} an account.`),
      h('p', { class: 'actions' }, actionButton('Download as a spreadsheet', () =>
        download(client.GET('/exports/users.csv', { parseAs: 'blob' }), 'users.csv')))),
    h('div', { class: 'filters' },
      h('div', { class: 'field' }, h('label', { for: 'search' }, 'Find by name or email'), search),
      role.element, club.element),
    found, list, pages,
  ]

  /** Shows the first page of the people that the admin looks for. */
  function look () {
    setAddress(addressOf(1))
    show(1)
  }

  /** @param {number} page */
  function addressOf (page) {
    const address = new URLSearchParams({
      search: search.value, role: role.input.value, club: club.input.value, page: String(page),
    })
    return `/admin/users?${address}`
  }

  /** @param {number} wanted */
  function show (wanted) {
    const words = plain(search.value).split(/\s+/)
    const shown = users.filter(user => words.every(word => plain(`${nameOf(user)} ${user.email}`).includes(word)) &&
      (!role.input.value || user.role === role.input.value) &&
      (!club.input.value || (user.clubId ?? 'none') === club.input.value))
    const last = Math.max(1, Math.ceil(shown.length / LIMIT))
    // The last person of the last page may have been deleted.
    const page = Math.min(wanted, last)
    found.replaceChildren(count(shown.length, 'person', 'people'))
    list.replaceChildren(...shown.slice((page - 1) * LIMIT, page * LIMIT).map(user => row(user, clubs)))
    pages.replaceChildren(pager(page, last, addressOf) ?? '')
  }

  /**
   * @param {string} name
   * @param {string} label
   * @param {[value: string, label: string][]} choices
   */
  function select (name, label, choices) {
    const input = h('select', { id: name, onchange: look }, ...choices.map(([value, words]) =>
      h('option', { value, selected: value === query.get(name) }, words)))
    return { input, element: h('div', { class: 'field' }, h('label', { for: name }, label), input) }
  }
}

/**
 * A text without capital letters and diacritics, so that "novakova" finds Nováková.
 *
 * @param {string} text
 */
const plain = text => text.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase()

/**
 * The clubs as options of a select.
 *
 * @param {Schemas['Club'][]} clubs
 */
const options = clubs => clubs.map(({ id, name }) => /** @type {[string, string]} */ ([id, name]))

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
        if (!await confirmed(`Delete ${nameOf(user)}?`, losses(user), 'Delete')) return
        await call(client.DELETE('/account/{id}', { params: { path: { id } } }))
        await done(`${nameOf(user)} has been deleted.`)
      }, { class: 'danger', ...describedBy })))
}

/** @param {User} user */
function losses ({ _count: { blogs, eventRegistrations } }) {
  const end = "You can't undo this."
  if (blogs + eventRegistrations === 0) return end
  return `This account has ${count(blogs, 'post')} and ${count(eventRegistrations, 'registration')}. Published posts ` +
    `stay, but without the name. Everything else of this person is deleted. ${end}`
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
        options: [['', 'No club'], ...options(clubs)],
      },
    ],
    verb: 'Save',
    cancel: close,
    draft: `user ${user.id}`,
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
