// Calendar subscriptions.
import { call, client } from './api.js'
import { API } from './config.js'
import { h } from './dom.js'
import { actionButton, linkField, notify, onDate, openDialog } from './parts.js'
import { here } from './router.js'

/**
 * Creates a button that shows the link to a public calendar.
 *
 * @param {string} path
 */
export const subscribeButton = path => actionButton('Subscribe', () => showAddress(path, [
  'Your calendar app checks this link for updates automatically.',
]))

/**
 * Creates a button for a link to the user's events. The service stores only a hash of the link, so it can show a link
 * only once.
 */
export const subscribeToOwnButton = () => actionButton('Subscribe', async () => {
  const page = here()
  const { account: { calendar } } = await call(client.GET('/me/account'))
  if (here() !== page) return
  if (calendar && !await replacesLink(calendar.createdAt)) return
  const { calendar: { path } } = await call(client.POST('/me/calendar'))
  await showAddress(path, [
    'Anyone with this link can see your events, so keep it private. You can see it only now.',
  ])
})

/**
 * Tells the user about their link, and asks before a new link replaces it.
 *
 * @param {string} createdAt
 */
const replacesLink = createdAt => openDialog('You already have a calendar link', close => [
  h('p', {}, 'You created it on ', onDate(createdAt), '. Your calendar app still has it, and updates by itself.'),
  h('p', {}, 'A new link is for a new device. The old link then stops working, so add the new link to all your ' +
    'calendar apps.'),
  h('div', { class: 'actions' },
    actionButton('Revoke the link', async () => {
      await call(client.DELETE('/me/calendar'))
      close(false)
      notify('The link has been revoked.')
    }),
    h('button', { type: 'button', onclick: () => close(true) }, 'Replace the link'),
    h('button', { type: 'button', class: 'primary', onclick: () => close(false) }, 'Keep the link')),
])

/**
 * @param {string} path
 * @param {string[]} words
 */
function showAddress (path, words) {
  const address = new URL(API + path)
  return openDialog('Subscribe', close => [
    ...words.map(text => h('p', {}, text)),
    linkField('Calendar link', address.href),
    h('div', { class: 'actions' },
      h('a', { class: 'button primary', href: address.href.replace(/^https?/, 'webcal') }, 'Open in my calendar'),
      h('button', { type: 'button', onclick: () => close() }, 'Close')),
  ])
}
