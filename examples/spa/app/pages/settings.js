import { call, client, download, loadUser } from '../api.js'
import { PROVIDER } from '../config.js'
import { h } from '../dom.js'
import { form } from '../form.js'
import { actionButton, heading, nameOf, notify, openDialog, portrait } from '../parts.js'
import { pictureField, takeDrops } from '../picture.js'
import { go } from '../router.js'
import { currentUser, signOut } from '../session.js'
import { showHeader } from '../shell.js'
import { passwordForm, whereEmailsLie } from './account.js'
import { notificationSwitches } from './notifications.js'

/** Everything about the account of the user. */
export async function settingsPage () {
  const [{ notifications }, { account }] = await Promise.all([
    call(client.GET('/me/notifications')), call(client.GET('/me/account')), loadUser(),
  ])
  const user = signedIn()
  return [h('div', { class: 'narrow settings' },
    heading('Settings'),
    namePart(),
    picturePart(),
    part('Email address',
      h('p', {}, `Your address is ${user.email}. `, account.isEmailVerified
        ? h('span', { class: 'badge published' }, 'Verified')
        : h('span', { class: 'badge draft' }, 'Not verified')),
      !account.isEmailVerified && h('p', {}, actionButton('Verify my address', async () => {
        const { message } = await call(client.POST('/me/email/verification'))
        notify(`${message}. ${whereEmailsLie()}`)
      })),
      h('p', {}, 'To change your address, open the link that we send to the new address.'),
      form({
        fields: [
          { name: 'email', label: 'New email', type: 'email', autocomplete: 'email' },
          {
            name: 'currentPassword', label: 'Your password', type: 'password', autocomplete: 'current-password',
          },
        ],
        verb: 'Change email',
        draft: 'email',
        async send ({ email = '', currentPassword = '' }) {
          const { message } = await call(client.POST('/me/email', { body: { email, currentPassword } }))
          notify(`${message}. ${whereEmailsLie()}`)
        },
      })),
    part('Password', h('p', {}, 'A new password signs you out on all other devices.'), passwordForm()),
    part('Emails', ...notificationSwitches(notifications)),
    part('Your data',
      h('p', {}, actionButton('Export my data', () =>
        download(client.GET('/me/export', { parseAs: 'blob' }), 'personal-data.json'))),
      h('p', {}, actionButton('Sign out everywhere', signOutEverywhere)),
      h('p', {}, actionButton('Delete my account', deleteAccount, { class: 'danger' }))))]
}

/**
 * @param {string} title
 * @param {...import('../dom.js').Child} content
 */
const part = (title, ...content) => h('section', {}, h('h2', {}, title), ...content)

function namePart () {
  const { firstName, lastName } = signedIn()
  const section = part('Name', form({
    fields: [
      { name: 'firstName', label: 'First name', autocomplete: 'given-name', value: firstName },
      { name: 'lastName', label: 'Last name', autocomplete: 'family-name', value: lastName },
    ],
    verb: 'Save name',
    draft: 'name',
    isEdit: true,
    async send (body) {
      await changeProfile(body, 'Your name has been saved.')
      replace(section, namePart)
    },
  }))
  return section
}

function picturePart () {
  const user = signedIn()
  /** @param {string | null} avatar @param {string} words */
  const change = async (avatar, words) => {
    await changeProfile({ avatar }, words)
    replace(section, picturePart)
  }
  const { element, take } = pictureField({
    id: 'avatar', label: 'New picture', chosen: ({ id }) => change(id, 'Your picture has been saved.'),
  })
  const section = part('Picture',
    portrait(nameOf(user), user.avatar),
    element,
    user.avatar && h('p', {}, actionButton('Remove picture', () => change(null, 'Your picture has been removed.'))))
  return takeDrops(section, take)
}

const signedIn = () => /** @type {NonNullable<ReturnType<typeof currentUser>>} */ (currentUser())

/**
 * @param {{ firstName?: string, lastName?: string, avatar?: string | null }} body
 * @param {string} words
 */
async function changeProfile (body, words) {
  await call(client.PUT('/me/profile', { body }))
  await loadUser()
  showHeader()
  notify(words)
}

/**
 * Replaces one part, so that the forms of the others keep what was typed. The focus goes to the heading.
 *
 * @param {HTMLElement} section
 * @param {() => HTMLElement} make
 */
function replace (section, make) {
  // The user may have left the page, or signed out.
  if (!section.isConnected) return
  const next = make()
  section.replaceWith(next)
  const h2 = next.querySelector('h2')
  h2?.setAttribute('tabindex', '-1')
  h2?.focus({ preventScroll: true })
}

/** Ends the tokens of all devices. */
async function signOutEverywhere () {
  await call(client.DELETE('/me/tokens'))
  signOut()
  await go('/')
  notify("You've been signed out on all devices.")
}

/** Asks for the password, or for a fresh sign-in with the provider, and deletes the account. */
async function deleteAccount () {
  const isDeleted = await openDialog('Delete your account', close => [
    h('p', {}, 'This cannot be undone. Your registrations, likes, drafts and pictures are deleted. Your published ' +
      'posts stay, without your name. Pictures that they or other pages show stay as well.'),
    PROVIDER && h('p', {}, 'If you have no password, sign in again first, and leave the field empty.'),
    form({
      fields: [{
        name: 'currentPassword',
        label: 'Your password',
        type: 'password',
        autocomplete: 'current-password',
        optional: Boolean(PROVIDER),
      }],
      verb: 'Delete my account',
      cancel: close,
      async send ({ currentPassword }) {
        await call(client.DELETE('/me', { body: { currentPassword: currentPassword || null } }))
        close(true)
      },
    }),
  ])
  if (!isDeleted) return
  signOut()
  await go('/')
  notify('Your account has been deleted.')
}
