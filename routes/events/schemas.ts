import { Type } from '@sinclair/typebox'

import {
  ClubCard, Count, DateTime, EmailAddress, Enum, eventFields, eventInputs, EventNotAllowed, EventNotFound, EventSummary,
  EXAMPLE_DATE, EXAMPLE_ID, FullName, IdParam, Message, OpaqueId, PageParams, Pagination, Registration,
  registrationFields, RegistrationsNotAllowed, ResponseObject, TextInput,
} from '../../lib/values/schemas.ts'

const Event = ResponseObject({ ...eventFields, club: ClubCard }, { title: 'Event' })

const params = Type.Object({ id: IdParam('The id of the event.') })

export const list = {
  operationId: 'listEvents',
  summary: 'List events',
  description: 'Returns a page of the events of all clubs, also past events. `GET /agenda` returns events to come, ' +
    'with their end, place and seats. Returns 500 for a negative `page` or `limit`.',
  querystring: Type.Object({
    ...PageParams('The number of events per page. The default is 12.'),
    sort: Type.Optional(Enum(['asc', 'desc'], {
      description: '`asc` puts the earliest date first. `desc`, the default, puts the latest date first.',
    })),
  }),
  response: {
    200: ResponseObject({
      events: Type.Array(ResponseObject({
        ...eventFields, club: ClubCard, registrationCount: Count,
      }, { title: 'EventWithCount' })),
      pagination: Pagination,
    }),
  },
}

export const listMine = {
  operationId: 'listMyClubEvents',
  summary: 'List your club\'s events',
  description: 'Each event lists the ids of its registrations. The latest date comes first.',
  response: {
    200: ResponseObject({
      events: Type.Array(ResponseObject({
        ...eventFields, club: ClubCard, registrations: Type.Array(ResponseObject({ id: OpaqueId })),
      }, { title: 'EventWithRegistrations' })),
    }),
    400: Message('You are not associated with any club'),
  },
}

export const create = {
  operationId: 'createEvent',
  summary: 'Create an event for your club',
  description: 'The event belongs to the club that you lead. Returns 500 if the date cannot be parsed.',
  body: Type.Object({
    title: eventInputs.title,
    description: eventInputs.description,
    data: TextInput({
      minLength: 1,
      description: 'The date and time of the event, preferably in ISO 8601 with an offset. A text without an offset ' +
        'is read as UTC. Responses call this field `date`.',
      examples: [EXAMPLE_DATE],
    }),
    imageUrl: Type.Optional({
      ...eventInputs.imageUrl, description: 'Required. The response is a 400 if it is missing.',
    }),
  }, { title: 'NewEvent' }),
  response: {
    201: ResponseObject({ event: Event }),
    400: Message('All fields are required', 'You must be a club head to create an event'),
  },
}

export const update = {
  operationId: 'updateEvent',
  summary: 'Update an event',
  description: 'Club heads may update events of their own club. Admins may update any event. Missing and empty ' +
    'fields stay unchanged. Returns 500 if the date cannot be parsed or the club does not exist.',
  params,
  body: Type.Partial(Type.Object({
    ...create.body.properties,
    imageUrl: eventInputs.imageUrl,
    clubId: TextInput({ description: 'The id of the club that takes over the event.', examples: [EXAMPLE_ID] }),
  }), { title: 'EventChanges' }),
  response: {
    200: ResponseObject({ event: Event, message: Type.Literal('Event updated successfully') }),
    403: EventNotAllowed,
    404: EventNotFound,
  },
}

export const remove = {
  operationId: 'deleteEvent',
  summary: 'Delete an event',
  description: 'This also deletes the registrations for the event. Club heads may delete events of their own club. ' +
    'Admins may delete any event.',
  params,
  response: {
    200: Message('Event deleted successfully'),
    403: Message('Not allowed to delete this event'),
    404: EventNotFound,
  },
}

export const ALREADY_REGISTERED = 'You have already registered for this event'
/** Error messages if an organizer has set when registration opens or closes. */
export const REGISTRATION_NOT_OPEN = 'Registration for this event has not opened yet'
export const REGISTRATION_CLOSED = 'Registration for this event has closed'

export const register = {
  operationId: 'registerForEvent',
  summary: 'Register for an event',
  description: 'You can also register for past events. If all seats are taken, the 201 is a place in line: ' +
    '`GET /me/seats` tells which. To cancel, send `PUT /me/seats/{eventId}`. Returns 500 if the event does not exist.',
  checkedByHandler: { params: Type.Object({ eventId: IdParam('The id of the event.') }) },
  response: {
    201: ResponseObject({
      registration: Registration,
    }),
    400: Message(ALREADY_REGISTERED, REGISTRATION_NOT_OPEN, REGISTRATION_CLOSED),
  },
}

export const listRegistered = {
  operationId: 'listMyRegistrations',
  summary: 'List your event registrations',
  description: 'The latest event date comes first.',
  response: {
    200: ResponseObject({
      registrations: Type.Array(ResponseObject({
        ...registrationFields, event: Event,
      }, { title: 'RegistrationWithEvent' })),
    }),
  },
}

export const listRegistrations = {
  operationId: 'listEventRegistrations',
  summary: 'List an event\'s registrations',
  description: 'The newest registration comes first. Club heads may see registrations for events of their own club. ' +
    'Admins may see all registrations.',
  checkedByHandler: { params },
  response: {
    200: ResponseObject({
      event: EventSummary,
      registrations: Type.Array(ResponseObject({
        id: OpaqueId,
        userId: OpaqueId,
        name: FullName,
        email: EmailAddress,
        registeredAt: DateTime,
      }, { title: 'Attendee' })),
    }),
    400: Message('Event ID is required'),
    403: RegistrationsNotAllowed,
    404: EventNotFound,
  },
}
