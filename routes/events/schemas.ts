import { Type } from '@sinclair/typebox'

import {
  ClubCard, Count, DateTime, EmailAddress, Enum, FirstName, FullName, IdParam, LastName, Message, NullableString,
  OpaqueId, PageParams, Pagination, ResponseObject, TextInput, UrlInput,
} from '../../lib/schemas.ts'

const TITLE = { examples: ['Chess Night'] }
const DESCRIPTION = { examples: ['Ten games at once, against anyone who comes.'] }
const IMAGE = { examples: ['https://images.example.org/chess-night.png'] }

const fields = {
  id: OpaqueId,
  title: Type.String(TITLE),
  description: Type.String(DESCRIPTION),
  imageUrl: NullableString(IMAGE),
  date: DateTime,
  clubId: OpaqueId,
  createdAt: DateTime,
}
const Event = ResponseObject({ ...fields, club: ClubCard }, { title: 'Event' })

const registration = { id: OpaqueId, userId: OpaqueId, eventId: OpaqueId, registeredAt: DateTime }

const Title = TextInput({ minLength: 3, ...TITLE })
const Description = TextInput({ minLength: 10, ...DESCRIPTION })
const Data = TextInput({
  minLength: 1,
  description: 'When it takes place: any date that JavaScript can parse; prefer ISO 8601. Responses name it `date`.',
  examples: DateTime.examples,
})
const Image = UrlInput(IMAGE)
const params = Type.Object({ id: IdParam({ description: 'The id of the event.' }) })

export const list = {
  operationId: 'listEvents',
  summary: 'List the events',
  description: 'Past and future events of all clubs.',
  querystring: Type.Object({
    ...PageParams('How many on a page; 12 by default.'),
    sort: Type.Optional(Enum(['asc', 'desc'], { description: 'Oldest or, by default, newest date first.' })),
  }),
  response: {
    200: ResponseObject({
      events: Type.Array(ResponseObject({
        ...fields, club: ClubCard, registrationCount: Count,
      }, { title: 'EventWithCount' })),
      pagination: Pagination,
    }),
  },
}

export const listMine = {
  operationId: 'listMyClubEvents',
  summary: 'List the events of your own club',
  description: 'With the ids of the registrations, newest date first.',
  response: {
    200: ResponseObject({
      events: Type.Array(ResponseObject({
        ...fields, club: ClubCard, registrations: Type.Array(ResponseObject({ id: OpaqueId })),
      }, { title: 'EventWithRegistrations' })),
    }),
    400: Message('You are not associated with any club'),
  },
}

export const create = {
  operationId: 'createEvent',
  summary: 'Add an event of your own club',
  description: 'Returns 500 when the date cannot be parsed.',
  body: Type.Object({
    title: Title,
    description: Description,
    data: Data,
    imageUrl: Type.Optional(UrlInput({ description: 'Required: without it the response is a 400.', ...IMAGE })),
  }, { title: 'NewEvent' }),
  response: {
    201: ResponseObject({ event: Event }),
    400: Message('All fields are required', 'You must be a club head to create an event'),
  },
}

export const update = {
  operationId: 'updateEvent',
  summary: 'Change an event',
  description: 'Club heads may change events of their own club, admins any. Fields that are left out or empty stay ' +
    'as they are.',
  params,
  body: Type.Object({
    title: Type.Optional(Title),
    description: Type.Optional(Description),
    data: Type.Optional(Data),
    imageUrl: Type.Optional(Image),
    clubId: Type.Optional(TextInput({ description: 'The club that the event goes to.', examples: OpaqueId.examples })),
  }, { title: 'EventChanges' }),
  response: {
    200: ResponseObject({ event: Event, message: Type.Literal('Event updated successfully') }),
    403: Message('Not allowed to modify this event'),
    404: Message('Event not found'),
  },
}

export const remove = {
  operationId: 'deleteEvent',
  summary: 'Delete an event',
  description: 'Deletes its registrations, too. Club heads may delete events of their own club, admins any.',
  params,
  response: {
    200: Message('Event deleted successfully'),
    403: Message('Not allowed to delete this event'),
    404: Message('Event not found'),
  },
}

export const register = {
  operationId: 'registerForEvent',
  summary: 'Register for an event',
  description: 'A registration is final. Returns 500 when the event does not exist.',
  docsOnly: { params: Type.Object({ eventId: IdParam({ description: 'The id of the event.' }) }) },
  response: {
    201: ResponseObject({
      registration: ResponseObject({
        ...registration,
        event: ResponseObject({ title: Type.String(TITLE) }),
        user: ResponseObject({ firstName: FirstName, lastName: LastName }),
      }, { title: 'Registration' }),
    }),
    400: Message('You have already registered for this event'),
  },
}

export const listRegistered = {
  operationId: 'listMyRegistrations',
  summary: 'List the events that you registered for',
  description: 'Newest date first.',
  response: {
    200: ResponseObject({
      registrations: Type.Array(ResponseObject({ ...registration, event: Event }, { title: 'RegistrationWithEvent' })),
    }),
  },
}

export const listRegistrations = {
  operationId: 'listEventRegistrations',
  summary: 'List who registered for an event',
  description: 'Latest first. Club heads see those of events of their own club, admins all.',
  docsOnly: { params },
  response: {
    200: ResponseObject({
      event: ResponseObject({ id: OpaqueId, title: Type.String(TITLE), date: DateTime }),
      registrations: Type.Array(ResponseObject({
        id: OpaqueId,
        userId: OpaqueId,
        name: FullName,
        email: EmailAddress,
        registeredAt: DateTime,
      }, { title: 'Attendee' })),
    }),
    400: Message('Event ID is required'),
    403: Message('Not allowed to view registrations for this event'),
    404: Message('Event not found'),
  },
}
