import { ApiError, loadUser, SessionExpired, whenExpired, written } from './api.js'
import { NAME } from './config.js'
import { h } from './dom.js'
import { followShown, unfollow } from './live.js'
import { clearNotice, closeDialogs, heading, lead, wordsOf } from './parts.js'
import { go, here, match, refresh, startRouter } from './router.js'
import { currentUser, hasRole, sessionEvents, token } from './session.js'
import { showFooter, showHeader } from './shell.js'
import {
  callbackPage, forgotPasswordPage, registerPage, resetPasswordPage, signInAgain, signInPage,
  unsubscribePage, verifyEmailPage,
} from './pages/account.js'
import { moderationPage } from './pages/admin/blogs.js'
import { clubsAdminPage } from './pages/admin/clubs.js'
import { mentorsAdminPage } from './pages/admin/mentors.js'
import { overviewPage } from './pages/admin/overview.js'
import { testimonialsAdminPage } from './pages/admin/testimonials.js'
import { usersPage } from './pages/admin/users.js'
import { blogPage, blogsPage } from './pages/blogs.js'
import { clubPage, clubsPage } from './pages/clubs.js'
import { drawPage } from './pages/draw.js'
import { eventPage, eventsPage } from './pages/events.js'
import { homePage } from './pages/home.js'
import { allEventsPage, attendeesPage, ownEventsPage } from './pages/manage.js'
import { mePage, submitPage } from './pages/me.js'
import { membersPage } from './pages/members.js'
import { mentorsPage } from './pages/mentors.js'
import { settingsPage } from './pages/settings.js'
import { testimonialsPage } from './pages/testimonials.js'

/** @import { Schemas } from 'community-platform-client' */
/** @import { Page } from './router.js' */

/** @type {Schemas['Role'][]} */
const EVERYBODY = ['STUDENT', 'CLUB_HEAD', 'ADMIN']

/** @type {[pattern: string, page: Page, roles?: Schemas['Role'][]][]} */
const PAGES = [
  ['/', homePage],
  ['/events', eventsPage],
  ['/events/*', eventPage],
  ['/events/*/draw', drawPage],
  ['/clubs', clubsPage],
  ['/clubs/*', clubPage],
  ['/clubs/*/members', membersPage, EVERYBODY],
  ['/blogs', blogsPage],
  ['/blogs/*', blogPage],
  ['/mentors', mentorsPage],
  ['/testimonials', testimonialsPage],
  ['/register', registerPage],
  ['/sign-in', signInPage],
  ['/auth/callback', callbackPage],
  ['/forgot-password', forgotPasswordPage],
  ['/reset-password', resetPasswordPage],
  ['/verify-email', verifyEmailPage],
  ['/me', mePage, EVERYBODY],
  ['/me/submit', submitPage, EVERYBODY],
  ['/me/settings', settingsPage, EVERYBODY],
  ['/unsubscribe', unsubscribePage],
  ['/manage', ownEventsPage, ['CLUB_HEAD', 'ADMIN']],
  ['/manage/*', attendeesPage, ['CLUB_HEAD', 'ADMIN']],
  ['/admin', overviewPage, ['ADMIN']],
  ['/admin/blogs', moderationPage, ['ADMIN']],
  ['/admin/events', allEventsPage, ['ADMIN']],
  ['/admin/users', usersPage, ['ADMIN']],
  ['/admin/clubs', clubsAdminPage, ['ADMIN']],
  ['/admin/mentors', mentorsAdminPage, ['ADMIN']],
  ['/admin/testimonials', testimonialsAdminPage, ['ADMIN']],
]

const main = /** @type {HTMLElement} */ (document.querySelector('#main'))

/** Number of navigations, so that only the page of the last navigation is shown. */
let visits = 0

/** @type {number | undefined} the position of a page that is not shown yet */
let arrival

/** @param {import('./router.js').Options} options */
async function show (options) {
  const visit = ++visits
  if (options.place !== undefined) {
    clearNotice()
    closeDialogs()
    arrival = options.place
  }
  unfollow()
  main.ariaBusy = 'true'
  await written()
  const nodes = await load()
  if (visit !== visits) return
  main.ariaBusy = null
  if (nodes.length === 0) return

  // A page that is loaded again before it was shown is still a new page.
  const place = arrival
  arrival = undefined
  const hadFocus = document.activeElement
  main.replaceChildren(...nodes)
  followShown(main)
  const h1 = main.querySelector('h1')
  document.title = location.pathname === '/' ? NAME : `${h1?.textContent} · ${NAME}`
  showHeader()
  if (place !== undefined) scrollTo(0, place)
  // The focused element may have disappeared with the old page. For the first page, the browser sets the focus.
  if (visit > 1 && (place !== undefined || !hadFocus?.isConnected)) h1?.focus({ preventScroll: true })
}

/** Returns the content of the current page, or a message. Returns an empty list after a redirect. */
async function load () {
  try {
    // Only a 401 ends the session. After any other error, the user can try the page again.
    const isExpired = Boolean(token()) && !currentUser() && await loadUser().then(() => false, ifExpired)
    for (const [pattern, page, roles] of PAGES) {
      const parts = match(pattern, location.pathname)
      if (!parts) continue
      if (roles && !currentUser()) return toSignIn(isExpired)
      if (roles && !hasRole(...roles)) {
        return [heading('No access', lead("Your role doesn't have access to this page."))]
      }
      return await page({ parts, query: new URLSearchParams(location.search) })
    }
    return notFound(WRONG_LINK)
  } catch (error) {
    if (error instanceof SessionExpired) return toSignIn(true)
    if (error instanceof ApiError && error.status === 404) return notFound(`${error.message}. It may be deleted.`)
    // Pages send only values of their address that the service can refuse.
    if (error instanceof ApiError && Object.keys(error.fields).length > 0) return notFound(WRONG_LINK)
    if (error instanceof ApiError && error.status === 403) return [heading('No access', lead(`${error.message}.`))]
    return [
      heading(error instanceof ApiError && error.status === 0 ? 'No connection' : 'Something went wrong'),
      h('p', { class: 'problem', role: 'alert' }, wordsOf(error)),
      h('p', {}, h('button', { type: 'button', class: 'primary', onclick: refresh }, 'Try again')),
    ]
  }
}

const WRONG_LINK = 'The link may be wrong or outdated.'

/** @param {string} words */
const notFound = words =>
  [heading('Page not found'), h('p', {}, words, ' ', h('a', { href: '/' }, 'Go to the home page'), '.')]

/** @param {unknown} error */
function ifExpired (error) {
  if (error instanceof SessionExpired) return true
  throw error
}

/** @param {boolean} isExpired */
function toSignIn (isExpired) {
  go(`/sign-in?${new URLSearchParams({ ...isExpired && { expired: '' }, to: here() })}`, { replace: true })
  return []
}

sessionEvents.addEventListener('change', showHeader)
sessionEvents.addEventListener('replaced', () => {
  closeDialogs()
  refresh()
})
whenExpired(signInAgain)
showFooter()
await startRouter(show)
