// Calendar subscriptions.
import { call, client } from './api.js'
import { API } from './config.js'
import { h } from './dom.js'
import { actionButton, notify, openDialog } from './parts.js'

/** @import { Child } from './dom.js' */

/**
 * Creates a button that shows the link to a public calendar.
 *
 * @param {string} path
 */
export const subscribeButton = path => actionButton('Subscribe', () => showAddress(path, [
  'Your calendar app checks this link for updates automatically.',
]))

/** Creates a button for a link to the user's events. Each click creates a new link: the service stores only hashes. */
export const subscribeToOwnButton = () => actionButton('Subscribe', async () => {
  const { calendar } = await call(client.POST('/me/calendar'))
  await showAddress(calendar.path, [
    'Anyone with this link can see your events, so keep it private. Your previous link no longer works.',
  ], close => actionButton('Revoke this link', async () => {
    await call(client.DELETE('/me/calendar'))
    close()
    notify('The link has been revoked.')
  }))
})

/**
 * @param {string} path
 * @param {string[]} words
 * @param {(close: () => void) => Child} [more]
 */
function showAddress (path, words, more) {
  const address = new URL(path, API)
  return openDialog('Subscribe', close => [
    ...words.map(text => h('p', {}, text)),
    h('div', { class: 'field' },
      h('label', { for: 'address' }, 'Calendar link'),
      h('input', { id: 'address', readonly: true, value: address.href, onfocus: ({ target }) => target.select() })),
    h('div', { class: 'actions' },
      more?.(close),
      h('a', { class: 'button primary', href: address.href.replace(/^https?/, 'webcal') }, 'Open in my calendar'),
      h('button', { type: 'button', onclick: () => close() }, 'Close')),
  ])
}
