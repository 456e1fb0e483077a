// Subscriptions of calendars.
import { call, client } from './api.js'
import { API } from './config.js'
import { h } from './dom.js'
import { actionButton, notify, openDialog } from './parts.js'

/** @import { Child } from './dom.js' */

/**
 * A button that shows the address of a public calendar.
 *
 * @param {string} path
 */
export const subscribeButton = path => actionButton('Subscribe', () => showAddress(path, [
  'Your calendar program asks there for what is new by itself.',
]))

/** The same for the user's own events. Creates a new address each time: the service does not store it in the clear. */
export const subscribeToOwnButton = () => actionButton('Subscribe', async () => {
  const { calendar } = await call(client.POST('/me/calendar'))
  await showAddress(calendar.path, [
    'Anyone with this address sees your events: keep it to yourself. An earlier address no longer works.',
  ], close => actionButton('End this address', async () => {
    await call(client.DELETE('/me/calendar'))
    close()
    notify('Nobody can see your events by that address any more.')
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
      h('label', { for: 'address' }, 'Address of the calendar'),
      h('input', { id: 'address', readonly: true, value: address.href, onfocus: ({ target }) => target.select() })),
    h('div', { class: 'actions' },
      more?.(close),
      h('a', { class: 'button primary', href: address.href.replace(/^https?/, 'webcal') }, 'Open in my calendar'),
      h('button', { type: 'button', onclick: () => close() }, 'Close')),
  ])
}
