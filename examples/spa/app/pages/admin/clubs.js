import { call, client, now } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import { count, cover, heading, inColour, lead, nothing, notify, onDate, openDialog } from '../../parts.js'
import { refresh } from '../../router.js'
import { adminNav } from '../../shell.js'
import { section } from '../clubs.js'

/** After how long an unanswered request needs an admin, in milliseconds. */
const OLD = 7 * 24 * 60 * 60 * 1000

/** All clubs, first the clubs that need an admin. The service cannot delete a club. */
export async function clubsAdminPage () {
  const { clubs } = await call(client.GET('/clubs'))
  const rows = await Promise.all(clubs.map(async ({ id, name, imageUrl, events }) => {
    const { members, requests: [oldest], requestCount } =
      await call(client.GET('/club-pages/{id}/members', { params: { path: { id } } }))
    const head = members.find(({ office }) => office === 'head')
    const offer = members.find(({ offered }) => offered === 'head')
    const isOld = oldest !== undefined && now() - Date.parse(oldest.askedAt) > OLD
    const leader = head
      ? h('span', {}, `led by ${head.name}`)
      : h('span', { class: 'badge draft' }, offer ? `without a head, ${offer.name} is asked` : 'without a head')
    return {
      needsAdmin: isOld || (!head && !offer),
      row: inColour(name, h('li', {},
        cover(name, imageUrl),
        h('div', {},
          h('h3', { id: `club-${id}` }, h('a', { href: `/clubs/${id}` }, name)),
          h('p', { class: 'meta' },
            leader,
            h('span', {}, count(members.length, 'member')),
            h('span', {}, count(events.length, 'event')),
            oldest && h('span', { class: isOld && 'badge draft' },
              count(requestCount, 'request'), ', the oldest of ', onDate(oldest.askedAt))),
          h('p', { class: 'actions start' },
            h('a', { href: `/clubs/${id}/members`, 'aria-describedby': `club-${id}` },
              head || offer ? 'Members' : 'Offer a member the office of the head'))))),
    }
  }))
  const listOf = (/** @type {boolean} */ needsAdmin) =>
    h('ul', { class: 'rows' }, ...rows.filter(row => row.needsAdmin === needsAdmin).map(({ row }) => row))
  const urgent = rows.filter(({ needsAdmin }) => needsAdmin).length
  const lists = [
    ...urgent > 0
      ? [section('Clubs that need you', false,
          lead('They have no head, or a request has waited for a week.'), listOf(true))]
      : [],
    ...urgent < clubs.length ? [section(urgent > 0 ? 'Other clubs' : 'All clubs', false, listOf(false))] : [],
  ]
  return [
    adminNav(),
    heading('Clubs', lead('Before you create a club, its head needs an account.')),
    h('p', {}, h('button', { type: 'button', class: 'primary', onclick: foundClub }, 'New club')),
    ...clubs.length === 0 ? [nothing('There are no clubs yet.')] : lists,
  ]
}

async function foundClub () {
  const saved = await openDialog('New club', close => [form({
    fields: [
      { name: 'name', label: 'Name' },
      { name: 'description', label: 'Description', type: 'textarea' },
      {
        name: 'clubHeadEmail',
        label: 'Email address of the club head',
        type: 'email',
        hint: 'They become a member of this club.',
      },
      { name: 'imageUrl', label: 'Picture', type: 'picture', optional: true },
    ],
    verb: 'Save',
    cancel: close,
    draft: 'new club',
    async send ({ name = '', description = '', clubHeadEmail = '', imageUrl }, once) {
      const body = { name, description, clubHeadEmail, imageUrl: imageUrl || null }
      await call(client.POST('/clubs', { params: { header: once }, body }))
      close(name)
    },
  })])
  if (!saved) return
  await refresh()
  notify(`“${saved}” has been created.`)
}
