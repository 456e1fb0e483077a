import { call, client, inSession } from '../api.js'
import { h } from '../dom.js'
import { notify, wordsOf } from '../parts.js'

/** @import { Schemas } from 'community-platform-client' */

/** @type {[name: keyof Schemas['Notifications'], label: string][]} */
const SWITCHES = [
  ['registration', 'I register for an event, get a seat, or am taken off the list'],
  ['eventChanged', 'an event I registered for has a new title, date, end, place, club or registration times'],
  ['eventCancelled', 'an event I registered for is cancelled'],
  ['eventReminder', 'an event I registered for begins soon'],
  ['eventMessage', 'the organizers of an event I registered for send a message'],
  ['blogDecision', 'my post is published or archived'],
  ['club', 'somebody asks to join my club, or a club decides about me'],
  ['clubNews', 'a club of mine has new events'],
]

/**
 * Which emails the user gets. A switch takes effect at once.
 *
 * @param {Schemas['Notifications']} notifications
 */
export const notificationSwitches = notifications => [
  h('fieldset', {},
    h('legend', {}, 'Send me an email when …'),
    ...SWITCHES.map(([name, label]) => h('div', { class: 'check' },
      h('input', {
        id: `email-${name}`,
        type: 'checkbox',
        checked: notifications[name],
        onchange: ({ target }) => change(name, target),
      }),
      h('label', { for: `email-${name}` }, label)))),
  h('p', { class: 'meta' }, 'We always send emails about your account. You get other emails if you have verified ' +
    'your address.'),
]

/** The last change, because a later change of the same switch must arrive later. */
let last = Promise.resolve()

/**
 * @param {keyof Schemas['Notifications']} name
 * @param {HTMLInputElement} target
 */
function change (name, target) {
  const { checked } = target
  last = last.then(async () => {
    try {
      await inSession(() => call(client.PUT('/me/notifications', { body: { notifications: { [name]: checked } } })))
    } catch (error) {
      target.checked = !checked
      notify(wordsOf(error), 'wrong')
    }
  })
}
