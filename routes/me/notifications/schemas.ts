import { type Static, type TBoolean, Type } from '@sinclair/typebox'

import { SWITCHES } from '../../../lib/email/notifications.ts'
import { ResponseObject, Unauthorized } from '../../../lib/values/schemas.ts'

/** The names of the switches. */
export const SWITCH_NAMES = Object.keys(SWITCHES) as (keyof typeof SWITCHES)[]

const switches = Object.fromEntries(SWITCH_NAMES.map(name =>
  [name, Type.Boolean({ description: SWITCHES[name], examples: [true] })])) as Record<keyof typeof SWITCHES, TBoolean>

export const NotificationSwitches = ResponseObject(switches, { title: 'Notifications' })
export type Notifications = Static<typeof NotificationSwitches>

export const list = {
  operationId: 'getMyNotifications',
  summary: 'Get your email preferences',
  description: 'All notifications are on by default. They are sent only to a verified email address. Emails about ' +
    'your account cannot be turned off.',
  response: {
    200: ResponseObject({
      notifications: NotificationSwitches,
      reminderHours: Type.Union([Type.Integer(), Type.Null()], {
        description: 'How many hours before an event the reminder is sent. `null` if reminders are off.',
        examples: [24],
      }),
    }),
    401: Unauthorized,
  },
}

export const set = {
  operationId: 'setMyNotifications',
  summary: 'Update your email preferences',
  description: 'You can change the object from `GET /me/notifications` and send it back. Missing fields stay ' +
    'unchanged.',
  body: Type.Object({ notifications: Type.Partial(Type.Object(switches)) }, { title: 'NotificationChanges' }),
  response: { 200: ResponseObject({ notifications: NotificationSwitches }), 401: Unauthorized },
}
