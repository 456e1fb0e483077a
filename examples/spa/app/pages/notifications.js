import { call, client, inSession } from '../api.js'
import { h } from '../dom.js'
import { actionButton, notify } from '../parts.js'

/** @import { Schemas } from 'community-platform-client' */

/** @type {[name: keyof Schemas['Notifications'], label: string][]} */
const SWITCHES = [
  ['registration', 'I register for an event'],
  ['eventChanged', 'an event I registered for changes its title, date or club'],
  ['eventCancelled', 'an event I registered for is cancelled'],
  ['eventReminder', 'an event I registered for begins soon'],
  ['eventMessage', 'the organizers of an event I registered for send a message'],
  ['blogDecision', 'my post is published or archived'],
]

/**
 * Which emails the user gets. A switch takes effect at once.
 *
 * @param {Schemas['Notifications']} notifications
 */
export const notificationSwitches = notifications => [
  h('p', {}, 'Send me an email when …'),
  ...SWITCHES.map(([name, label]) => h('p', {}, h('label', {},
    h('input', {
      type: 'checkbox',
      checked: notifications[name],
      /** @param {{ target: HTMLInputElement }} event */
      async onchange ({ target }) {
        try {
          const body = { notifications: { [name]: target.checked } }
          await inSession(() => call(client.PUT('/me/notifications', { body })))
        } catch (error) {
          target.checked = !target.checked
          notify(/** @type {Error} */ (error).message)
        }
      },
    }), ` ${label}`))),
  h('p', { class: 'meta' }, 'We always send emails about your account. You get other emails if you have verified ' +
    'your address.'),
  h('p', {}, actionButton('Verify my address', async () => {
    const { message } = await call(client.POST('/me/email/verification'))
    notify(`${message}.`)
  })),
]
