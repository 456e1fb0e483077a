import { ApiError, call, client, loadUser, signInWith } from '../api.js'
import { API, EMAILS, PROVIDER } from '../config.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import { actionButton, heading, lead, notify, openDialog } from '../parts.js'
import { go, here, within } from '../router.js'
import {
  beginSignIn, canSignIn, currentUser, endSignIn, isShared, isSomebodyElse, keepDraft, onOtherSignIns, signOut,
} from '../session.js'

/** @import { Field } from '../form.js' */
/** @import { Visit } from '../router.js' */

/** @type {Field} */
const EMAIL = { name: 'email', label: 'Email', type: 'email', autocomplete: 'email' }

/**
 * Tells a new user about the email with the link that verifies their address.
 *
 * @param {string} email
 */
function aboutEmail (email) {
  if (!EMAILS) return ''
  const next = 'Open its link, so that you get emails about your events.'
  return EMAILS.folder ? `${whereEmailsLie()} ${next}` : `We sent an email to ${email}. ${next}`
}

/** Tells where emails lie while the service sends none; empty if it sends them. */
export const whereEmailsLie = () =>
  EMAILS?.folder ? `The service sends no emails yet. They are files in ${EMAILS.folder}.` : ''

/**
 * Tells users that they get no emails, until they have verified their address. Empty if the service sends none.
 *
 * @param {{ isEmailVerified: boolean }} account
 */
export const unverified = account => !EMAILS || account.isEmailVerified
  ? []
  : [h('p', { class: 'unverified' },
      'Your email address is not verified, so you get no emails about your events and clubs. ',
      actionButton('Send again', async () => {
        const { message } = await call(client.POST('/me/email/verification'))
        notify(`${message}. ${whereEmailsLie()}`)
      }, { 'aria-label': 'Send again the email that verifies my address' }))]

/** @returns {Field} */
const sharedField = () => ({
  name: 'shared',
  label: 'This is a shared computer',
  type: 'checkbox',
  // As the user chose for a session that has expired.
  value: isShared() ? 'yes' : '',
  hint: 'You will be signed out when you close this tab.',
})

/** A message for people whose browser cannot keep a token. */
const blocked = () => h('p', { class: 'problem', role: 'alert' }, 'Your browser blocks storage for this site, so you ' +
  "can't sign in. Allow cookies and site data for this site in the settings of your browser, then reload the page.")

/**
 * @param {string} name
 * @returns {Field}
 */
const newPassword = name => ({
  name,
  label: 'New password',
  type: 'password',
  autocomplete: 'new-password',
  hint: 'At least 8 characters, and not a common password.',
})

/** @param {Visit} visit */
export function signInPage ({ query }) {
  const to = within(query.get('to'))
  if (currentUser()) return leadOn(to)
  return [h('div', { class: 'narrow' },
    heading('Sign in', query.has('expired')
      ? h('p', { class: 'banner' }, 'Your session has expired. Please sign in again.')
      : lead('Sign in to register for events, like mentors and write blog posts.')),
    ...canSignIn ? [signInForm((token, shared) => welcome(token, to, { shared })), provider(to)] : [blocked()],
    h('p', {}, h('a', { href: '/forgot-password' }, 'Forgot your password?')),
    h('p', {}, 'New here? ', h('a', { href: `/register?${new URLSearchParams({ to })}` }, 'Sign up')))]
}

/** @type {Field} */
const PASSWORD = { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' }

/**
 * @param {(token: string, shared?: boolean) => Promise<unknown>} signedIn
 * @param {() => void} [cancel] for a user whose session has expired, which stays as shared as it was
 */
const signInForm = (signedIn, cancel) => form({
  fields: cancel ? [EMAIL, PASSWORD] : [EMAIL, PASSWORD, sharedField()],
  verb: 'Sign in',
  cancel,
  async send ({ email = '', password = '', shared }) {
    const { token } = await call(client.POST('/auth/login', { body: { email, password } }))
    await signedIn(token, shared === undefined ? undefined : shared !== '')
  },
})

/** @type {Promise<boolean> | undefined} */
let dialog

/**
 * Asks a user whose session has expired to sign in again, in a dialog over their page. Resolves to `true` if they did.
 */
export function signInAgain () {
  dialog ??= openSignIn().finally(() => { dialog = undefined })
  return dialog
}

async function openSignIn () {
  let stop = () => {}
  const isDone = await openDialog('Your session has expired', close => {
    /** @param {string} token @param {boolean} [shared] */
    const signedIn = async (token, shared = false) => {
      await signInWith(token, shared || isShared())
      close(true)
    }
    // A sign-in with the provider needs a separate tab, because it would replace this page.
    stop = onOtherSignIns(signedIn)
    return [
      h('p', {}, 'Please sign in again. Your text is still there.'),
      signInForm(signedIn, close),
      PROVIDER && h('p', { class: 'or' },
        h('a', { class: 'button', href: '/sign-in', target: '_blank' }, `Sign in with ${providerName(PROVIDER)}`)),
    ]
  })
  stop()
  if (!isDone) return false
  if (!isSomebodyElse()) return true
  // The page belongs to the previous user.
  location.assign('/')
  return false
}

/** The name of the draft of the form. */
const SIGN_UP = 'sign-up'

/** @param {Visit} visit */
export function registerPage ({ query }) {
  const to = within(query.get('to'))
  if (currentUser()) return leadOn(to)
  return [h('div', { class: 'narrow' },
    heading('Sign up', lead('Creating an account takes a minute. You start as a student.')),
    ...canSignIn
      ? [form({
          fields: [
            { name: 'firstName', label: 'First name', autocomplete: 'given-name' },
            { name: 'lastName', label: 'Last name', autocomplete: 'family-name' },
            EMAIL,
            {
              name: 'password',
              label: 'Password',
              type: 'password',
              autocomplete: 'new-password',
              // The service accepts common passwords at sign-up, because the contract says so.
              hint: 'At least 8 characters. Avoid common passwords: you could not choose one again later.',
            },
            sharedField(),
          ],
          verb: 'Sign up',
          draft: SIGN_UP,
          async send ({ firstName = '', lastName = '', email = '', password = '', shared }) {
            const body = { firstName, lastName, email, password }
            const { token } = await call(client.POST('/auth/register', { body }))
            // The draft belongs to nobody, and the form is now one of the new user.
            keepDraft(SIGN_UP, null)
            await welcome(token, to, { shared: shared !== '', words: aboutEmail(email) })
          },
        }), provider(to)]
      : [blocked()],
    h('p', {}, 'Already have an account? ', h('a', { href: `/sign-in?${new URLSearchParams({ to })}` }, 'Sign in')))]
}

/**
 * The page to which the service redirects after a sign-in with the identity provider.
 *
 * @param {Visit} visit
 */
export async function callbackPage ({ query }) {
  const token = query.get('token')
  // Removes the token from the browser's history.
  history.replaceState(null, '', '/auth/callback')
  const begun = endSignIn(query.get('to'))
  // The token was stored, but loading the user failed at first.
  if (!token && currentUser()) return leadOn('/')
  if (!token || !begun) {
    return [heading('Sign-in was not completed'), h('p', {}, h('a', { href: '/sign-in' }, 'Try again'), '.')]
  }
  await welcome(token, begun.to, { shared: begun.shared })
  return []
}

/** The form that requests an email with a link to `/reset-password`. */
export function forgotPasswordPage () {
  return [h('div', { class: 'narrow' },
    heading('Forgot your password?', lead("We'll send you an email with a link to set a new one.")),
    form({
      fields: [EMAIL],
      verb: 'Send the email',
      async send ({ email = '' }) {
        const { message } = await call(client.POST('/account/password/forgot', { body: { email } }))
        notify(`${message}. ${whereEmailsLie()}`)
      },
    }))]
}

/** The page of the password-reset link. */
export function resetPasswordPage () {
  const token = takeToken()
  if (!token) return noToken('/forgot-password')
  return [h('div', { class: 'narrow' },
    heading('Set a new password', lead('You will be signed out on all devices.')),
    form({
      fields: [newPassword('password')],
      verb: 'Set password',
      async send ({ password = '' }) {
        await call(client.POST('/account/password/reset', { body: { token, password } }))
        signOut()
        await go('/sign-in', { replace: true })
        notify('Your password has been set. Please sign in.')
      },
    }))]
}

/** The page of the link that verifies an email address. */
export function verifyEmailPage () {
  const token = takeToken()
  if (!token) return noToken('/')
  return [h('div', { class: 'narrow' },
    heading('Is this your email address?', lead("Someone used it for an account. If it wasn't you, " +
      "close this page. If you confirm, a stranger's account gets your email address.")),
    // The page waits for a click, because programs also open the links in emails.
    h('p', {}, actionButton('Yes, it is mine', async () => {
      await call(client.POST('/account/email/verify', { body: { token } }))
      // The address may be new.
      if (currentUser()) await loadUser()
      await go('/', { replace: true })
      notify('Thank you. Your email address has been verified.')
    }, { class: 'primary' })))]
}

/** The page of the unsubscribe link. */
export function unsubscribePage () {
  const token = takeToken()
  if (!token) return noToken('/me/settings')
  /** @type {HTMLElement} */
  const page = h('div', { class: 'narrow' },
    heading('Unsubscribe from these emails', lead('You can turn them on again in your settings.')),
    h('p', {}, actionButton('Turn them off', async () => {
      try {
        await call(client.POST('/account/unsubscribe/{token}', { params: { path: { token } } }))
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 404)) throw error
        return page.replaceChildren(
          heading('This link no longer works', lead('Its account was deleted, or the link is very old.')),
          h('p', {}, 'You can choose your emails in ', h('a', { href: '/me/settings' }, 'your settings'), '.'))
      }
      await go('/', { replace: true })
      notify("You're unsubscribed from these emails.")
    })))
  return [page]
}

/** The form that changes the password. The service revokes all tokens and returns a new token. */
export const passwordForm = () => form({
  fields: [
    { name: 'currentPassword', label: 'Current password', type: 'password', autocomplete: 'current-password' },
    newPassword('newPassword'),
  ],
  verb: 'Change password',
  async send ({ currentPassword = '', newPassword = '' }) {
    const page = here()
    const { token } = await call(client.PUT('/me/password', { body: { currentPassword, newPassword } }))
    await signInWith(token)
    if (here() === page) await go('/me')
    notify('Your password has been changed.')
  },
})

/** The token in the fragment of a link. Removes it from the browser's history. */
function takeToken () {
  const token = new URLSearchParams(location.hash.slice(1)).get('token')
  history.replaceState(null, '', location.pathname)
  return token
}

/** @param {string} href the page to continue on */
const noToken = href => [heading('This link is incomplete'), h('p', {}, h('a', { href }, 'Continue without it'), '.')]

/**
 * @param {string} token
 * @param {string} to
 * @param {{ shared?: boolean | undefined, words?: string }} options
 */
async function welcome (token, to, { shared = false, words = '' }) {
  await signInWith(token, shared)
  // Back leads to the page before the sign-in.
  await go(to, { replace: true })
  notify(`Welcome, ${currentUser()?.firstName}. ${words}`.trim())
}

/** @param {string} to */
function leadOn (to) {
  go(to, { replace: true })
  return []
}

/**
 * Creates the button that starts a sign-in with the identity provider. A link could be opened in a new tab, which does
 * not have the value that `beginSignIn` stores.
 *
 * @param {string} to
 */
function provider (to) {
  if (!PROVIDER) return null
  const onclick = () => {
    const isShared = document.querySelector('input[name=shared]:checked') !== null
    // The service returns `redirect` as `to`.
    location.assign(`${API}/auth/google/start?${new URLSearchParams({ redirect: beginSignIn(to, isShared) })}`)
  }
  return h('p', { class: 'or' }, h('button', { type: 'button', onclick }, `Sign in with ${providerName(PROVIDER)}`))
}

/** @param {string} issuer */
const providerName = issuer => issuer === 'https://accounts.google.com' ? 'Google' : new URL(issuer).hostname
