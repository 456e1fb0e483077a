import { call, client, inSession } from '../api.js'
import { h } from '../dom.js'
import { actionButton, heading, lead, notify } from '../parts.js'

/** @import { Schemas } from 'community-platform-client' */

/** @type {[name: keyof Schemas['Notifications'], label: string][]} */
const SWITCHES = [
  ['registration', 'I have registered for an event'],
  ['eventChanged', 'An event that I am registered for has another title, date or club'],
  ['eventCancelled', 'An event that I am registered for is cancelled'],
  ['eventReminder', 'An event that I am registered for begins soon'],
  ['eventMessage', 'A club writes to all who are registered for its event'],
  ['blogDecision', 'My blog is published or archived'],
]

/** Which emails the user gets. A switch takes effect at once. */
export async function notificationsPage () {
  const { notifications } = await call(client.GET('/me/notifications'))
  return [h('div', { class: 'narrow' },
    heading('Emails', lead('You get an email when …')),
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
    h('p', { class: 'meta' }, 'Emails about your account always come. Others need an email that is verified.'),
    h('p', {}, actionButton('Send me the link to verify it', async () => {
      const { message } = await call(client.POST('/me/email/verification'))
      notify(`${message}.`)
    })))]
}
