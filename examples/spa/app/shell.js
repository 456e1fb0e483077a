// The header and footer of every page, and the navigation of the admin pages.
import { h } from './dom.js'
import { nameOf, notify, portrait } from './parts.js'
import { go } from './router.js'
import { currentUser, hasRole, signOut, token } from './session.js'
import { API, NAME } from './config.js'

/** @type {[href: string, words: string][]} */
const PUBLIC = [
  ['/events', 'Events'], ['/clubs', 'Clubs'], ['/blogs', 'Blog'], ['/mentors', 'Mentors'],
  ['/testimonials', 'Testimonials'],
]

/** @type {[href: string, words: string][]} */
const ADMIN = [
  ['/admin', 'Overview'], ['/admin/blogs', 'Blog'], ['/admin/events', 'Events'], ['/admin/users', 'Users'],
  ['/admin/clubs', 'Clubs'], ['/admin/mentors', 'Mentors'], ['/admin/testimonials', 'Testimonials'],
]

const header = /** @type {HTMLElement} */ (document.querySelector('#header'))
const footer = /** @type {HTMLElement} */ (document.querySelector('#footer'))

/** Updates the header for the current user and page. */
export function showHeader () {
  const { pathname } = location
  const user = currentUser()
  const personal = user
    ? [
        hasRole('CLUB_HEAD', 'ADMIN') && user.club && item(['/manage', 'My events']),
        hasRole('ADMIN') && item(['/admin', 'Admin']),
        h('li', {}, h('a', { href: '/me', 'aria-current': pathname === '/me' && 'page', class: 'who' },
          portrait(nameOf(user), user.avatar), h('span', {}, user.firstName))),
        h('li', {}, h('button', { type: 'button', class: 'plain', onclick: leave }, 'Sign out')),
      ]
    : token()
      // The user could not be loaded, but may still be signed in.
      ? [h('li', {}, h('button', { type: 'button', class: 'plain', onclick: leave }, 'Sign out'))]
      : [item(['/sign-in', 'Sign in']), h('li', {}, h('a', { href: '/register', class: 'button' }, 'Sign up'))]

  /** @type {HTMLElement} */
  const menu = h('nav', { id: 'menu', 'aria-label': 'Main' },
    h('ul', {}, ...PUBLIC.map(item)),
    h('ul', {}, ...personal))
  /** @param {boolean} isOpen */
  const open = isOpen => {
    toggle.ariaExpanded = String(isOpen)
    menu.classList.toggle('open', isOpen)
  }
  /** @type {HTMLElement} */
  const toggle = h('button', {
    type: 'button',
    class: 'toggle',
    'aria-expanded': 'false',
    'aria-controls': 'menu',
    onclick: () => open(toggle.ariaExpanded !== 'true'),
  }, 'Menu')
  header.onkeydown = ({ key }) => {
    if (key !== 'Escape' || toggle.ariaExpanded !== 'true') return
    open(false)
    toggle.focus()
  }
  header.replaceChildren(
    h('div', { class: 'bar' },
      h('a', { href: '/', class: 'brand' },
        h('img', { src: '/icon.svg', alt: '', width: 32, height: 32 }), h('span', {}, NAME)),
      toggle, menu))
}

/** @param {[href: string, words: string]} link */
function item ([href, words]) {
  const { pathname } = location
  const current = pathname === href ? 'page' : pathname.startsWith(`${href}/`) && 'true'
  return h('li', {}, h('a', { href, 'aria-current': current }, words))
}

async function leave () {
  signOut()
  await go('/')
  notify("You've been signed out.")
}

export function showFooter () {
  footer.replaceChildren(h('p', {}, 'An example app for the Community Platform. ',
    h('a', { href: `${API}/docs`, rel: 'external', target: '_blank' }, 'API documentation')))
}

/** The navigation of the admin pages. */
export const adminNav = () => h('nav', { class: 'tabs', 'aria-label': 'Administration' },
  h('ul', {}, ...ADMIN.map(([href, words]) => h('li', {},
    h('a', { href, 'aria-current': location.pathname === href && 'page' }, words)))))
