import { call, client, signInWith } from '../api.js'
import { API, PROVIDER } from '../config.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import { heading, lead, notify } from '../parts.js'
import { go, within } from '../router.js'
import { beginSignIn, currentUser, endSignIn } from '../session.js'

/** @import { Field } from '../form.js' */
/** @import { Visit } from '../router.js' */

/** @type {Field} */
const EMAIL = { name: 'email', label: 'Email', type: 'email', autocomplete: 'email' }

/** @param {Visit} visit */
export function signInPage ({ query }) {
  const to = within(query.get('to'))
  if (currentUser()) return leadOn(to)
  return [h('div', { class: 'narrow' },
    heading('Sign in', query.has('expired')
      ? h('p', { class: 'banner' }, 'Your session has expired. Please sign in again.')
      : lead('To register for events, like mentors and write.')),
    form({
      fields: [EMAIL, { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' }],
      verb: 'Sign in',
      async send ({ email = '', password = '' }) {
        const { token } = await call(client.POST('/auth/login', { body: { email, password } }))
        await welcome(token, to)
      },
    }),
    provider(to),
    h('p', {}, 'New here? ', h('a', { href: `/register?${new URLSearchParams({ to })}` }, 'Register')))]
}

/** @param {Visit} visit */
export function registerPage ({ query }) {
  const to = within(query.get('to'))
  if (currentUser()) return leadOn(to)
  return [h('div', { class: 'narrow' },
    heading('Register', lead('An account takes a minute. You start as a student.')),
    form({
      fields: [
        { name: 'firstName', label: 'First name', autocomplete: 'given-name' },
        { name: 'lastName', label: 'Last name', autocomplete: 'family-name' },
        EMAIL,
        {
          name: 'password',
          label: 'Password',
          type: 'password',
          autocomplete: 'new-password',
          hint: 'At least 8 characters.',
        },
      ],
      verb: 'Register',
      async send ({ firstName = '', lastName = '', email = '', password = '' }) {
        const { token } = await call(client.POST('/auth/register', { body: { firstName, lastName, email, password } }))
        await welcome(token, to)
      },
    }),
    provider(to),
    h('p', {}, 'Have an account? ', h('a', { href: `/sign-in?${new URLSearchParams({ to })}` }, 'Sign in')))]
}

/**
 * The page that the service redirects to after a sign-in with a provider.
 *
 * @param {Visit} visit
 */
export async function callbackPage ({ query }) {
  const token = query.get('token')
  // Removes the token from the browser's history.
  history.replaceState(null, '', '/auth/callback')
  const to = endSignIn(query.get('to'))
  if (!token || !to) return [heading('That was no sign-in'), h('p', {}, h('a', { href: '/sign-in' }, 'Try again'), '.')]
  await welcome(token, to, true)
  return []
}

/**
 * @param {string} token
 * @param {string} to
 * @param {boolean} [replace]
 */
async function welcome (token, to, replace = false) {
  await signInWith(token)
  await go(to, { replace })
  notify(`Welcome, ${currentUser()?.firstName}.`)
}

/** @param {string} to */
function leadOn (to) {
  go(to, { replace: true })
  return []
}

/**
 * The button that starts a sign-in with a provider. Not a link, which could be opened in a tab without the session.
 *
 * @param {string} to
 */
function provider (to) {
  if (!PROVIDER) return null
  const name = PROVIDER === 'https://accounts.google.com' ? 'Google' : new URL(PROVIDER).hostname
  const onclick = () => {
    // The service returns `redirect` as `to`.
    location.assign(`${API}/auth/google/start?${new URLSearchParams({ redirect: beginSignIn(to) })}`)
  }
  return h('p', { class: 'or' }, h('button', { type: 'button', onclick }, `Sign in with ${name}`))
}
