import { call, client } from '../../api.js'
import { h } from '../../dom.js'
import { form } from '../../form.js'
import { count, cover, heading, inColour, lead, nameOf, nothing, notify, openDialog } from '../../parts.js'
import { refresh } from '../../router.js'
import { adminNav } from '../../shell.js'

/** All clubs. The service cannot change or delete a club. */
export async function clubsAdminPage () {
  const { clubs } = await call(client.GET('/clubs'))
  return [
    adminNav(),
    heading('Clubs', lead('Before you create a club, its head needs an account.')),
    h('p', {}, h('button', { type: 'button', class: 'primary', onclick: foundClub }, 'New club')),
    clubs.length === 0
      ? nothing('There are no clubs yet.')
      : h('ul', { class: 'rows' }, ...clubs.map(({ id, name, imageUrl, clubHeadId, members, events }) => {
        const head = members.find(member => member.id === clubHeadId)
        return inColour(name, h('li', {},
          cover(name, imageUrl),
          h('div', {},
            h('h2', {}, h('a', { href: `/clubs/${id}` }, name)),
            h('p', { class: 'meta' },
              h('span', {}, head ? `led by ${nameOf(head)}` : 'without a head'),
              h('span', {}, count(members.length, 'member')),
              h('span', {}, count(events.length, 'event'))))))
      })),
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
