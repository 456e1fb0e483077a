import { type Static, Type } from '@sinclair/typebox'

import { ResponseObject, Unauthorized } from '../../../lib/values/schemas.ts'

const Switch = (description: string) => Type.Boolean({ description, examples: [true] })

const SWITCHES = {
  registration: Switch('Sent after you register for an event, when you get a seat, and when you are removed.'),
  eventChanged: Switch('Sent when an event you registered for changes its title, date, end, place or club.'),
  eventCancelled: Switch('Sent when an event you registered for is cancelled.'),
  eventReminder: Switch('Sent shortly before an event you registered for.'),
  eventMessage: Switch('Sent when the organizers write to everyone who comes to an event.'),
  blogDecision: Switch('Sent when your blog post is published or archived.'),
  club: Switch('Sent when people ask to join your club, and when a club decides about you.'),
  clubNews: Switch('Sent when a club of yours has new events, at most once a day for each club.'),
}

/** The names of the switches. */
export const SWITCH_NAMES = Object.keys(SWITCHES) as (keyof typeof SWITCHES)[]

export const NotificationSwitches = ResponseObject(SWITCHES, { title: 'Notifications' })
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
  body: Type.Object({ notifications: Type.Partial(Type.Object(SWITCHES)) }, { title: 'NotificationChanges' }),
  response: { 200: ResponseObject({ notifications: NotificationSwitches }), 401: Unauthorized },
}
