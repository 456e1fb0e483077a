import { call, client } from '../../api.js'
import { bars, columns } from '../../chart.js'
import { h } from '../../dom.js'
import { heading, lead, nameOf, nothing, onDate, ROLES, STATUSES } from '../../parts.js'
import { adminNav } from '../../shell.js'

/** Number of events and months in the charts. */
const EVENTS = 6
const MONTHS = 12

const MONTH = new Intl.DateTimeFormat(undefined, { month: 'short' })
const MONTH_AND_YEAR = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric' })

/** Statistics of the whole community. */
export async function overviewPage () {
  const [{ analytics }, { events }, { users }, { blogs }] = await Promise.all([
    call(client.GET('/users/analytics')),
    call(client.GET('/events', { params: { query: { limit: '1000' } } })),
    call(client.GET('/users')),
    call(client.GET('/blogs/admin')),
  ])
  const { roleCounts, recentRegistrations } = analytics
  const totals = Object.entries({
    People: analytics.totalUsers,
    Clubs: analytics.totalClubs,
    Events: analytics.totalEvents,
    Posts: analytics.totalBlogs,
    Mentors: analytics.totalMentors,
  })
  const roles = Object.entries(ROLES).map(([role, label]) =>
    ({ label, value: roleCounts.find(count => count.role === role)?._count.role ?? 0 }))
  const statuses = Object.entries(STATUSES).map(([status, label]) =>
    ({ label, value: blogs.filter(blog => blog.status === status).length }))
  const busiest = events.toSorted((one, other) => other.registrationCount - one.registrationCount).slice(0, EVENTS)
  return [
    adminNav(),
    heading('Overview', lead('The community in numbers.')),
    h('dl', { class: 'tiles' },
      ...totals.map(([label, value]) => h('div', {}, h('dt', {}, label), h('dd', {}, value)))),
    h('div', { class: 'charts' },
      bars('Registrations for the busiest events', ['Event', 'Registrations'],
        busiest.map(({ title, registrationCount }) => ({ label: title, value: registrationCount }))),
      columns('New accounts per month', ['Month', 'Accounts'], accountsByMonth(users)),
      bars('People by role', ['Role', 'People'], roles),
      bars('Posts by status', ['Status', 'Posts'], statuses)),
    h('section', { 'aria-labelledby': 'recent' },
      h('h2', { id: 'recent' }, 'Latest registrations'),
      recentRegistrations.length === 0
        ? nothing('No one has registered for an event yet.')
        : h('ul', { class: 'rows' }, ...recentRegistrations.map(({ event, user, registeredAt }) => h('li', {},
          h('p', {}, h('b', {}, nameOf(user)), ' for ', event.title),
          h('p', { class: 'meta' }, onDate(registeredAt)))))),
  ]
}

/** @param {{ createdAt: string }[]} users */
function accountsByMonth (users) {
  const now = new Date()
  return Array.from({ length: MONTHS }, (_, place) => {
    const month = new Date(now.getFullYear(), now.getMonth() - MONTHS + 1 + place)
    const isIn = (/** @type {Date} */ date) =>
      date.getFullYear() === month.getFullYear() && date.getMonth() === month.getMonth()
    return {
      label: MONTH_AND_YEAR.format(month),
      short: MONTH.format(month),
      value: users.filter(({ createdAt }) => isIn(new Date(createdAt))).length,
    }
  })
}
