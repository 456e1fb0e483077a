import { Type } from '@sinclair/typebox'

import { Answer, Club, DateTime, Enum, Id, Message, Nullable, Text, Url } from '../../lib/schemas.ts'

const record = {
  id: Type.String(),
  title: Type.String(),
  description: Type.String(),
  imageUrl: Nullable,
  date: DateTime,
  clubId: Type.String(),
  createdAt: DateTime,
}
const Event = Answer({ ...record, club: Club })

const registration = { id: Type.String(), userId: Type.String(), eventId: Type.String(), registeredAt: DateTime }

const Title = Text({ minLength: 3 })
const Description = Text({ minLength: 10 })
const Data = Text({ minLength: 1 })
const params = Type.Object({ id: Id() })

export const list = {
  querystring: Type.Object({
    page: Type.Optional(Type.String()),
    limit: Type.Optional(Type.String()),
    sort: Type.Optional(Enum('asc', 'desc')),
  }),
  response: {
    200: Answer({
      events: Type.Array(Answer({ ...record, club: Club, registrationCount: Type.Integer() })),
      pagination: Answer({
        page: Type.Integer(), pages: Type.Integer(), total: Type.Integer(), limit: Type.Integer(),
      }),
    }),
  },
}

export const listMine = {
  response: {
    200: Answer({
      events: Type.Array(Answer({ ...record, club: Club, registrations: Type.Array(Answer({ id: Type.String() })) })),
    }),
    400: Message('You are not associated with any club'),
  },
}

export const create = {
  body: Type.Object({ title: Title, description: Description, data: Data, imageUrl: Type.Optional(Url()) }),
  response: {
    201: Answer({ event: Event }),
    400: Message('All fields are required', 'You must be a club head to create an event'),
  },
}

export const update = {
  params,
  body: Type.Object({
    title: Type.Optional(Title),
    description: Type.Optional(Description),
    data: Type.Optional(Data),
    imageUrl: Type.Optional(Url()),
    clubId: Type.Optional(Text()),
  }),
  response: {
    200: Answer({ event: Event, message: Type.Literal('Event updated successfully') }),
    403: Message('Not allowed to modify this event'),
    404: Message('Event not found'),
  },
}

export const remove = {
  params,
  response: {
    200: Message('Event deleted successfully'),
    403: Message('Not allowed to delete this event'),
    404: Message('Event not found'),
  },
}

export const register = {
  response: {
    201: Answer({
      registration: Answer({
        ...registration,
        event: Answer({ title: Type.String() }),
        user: Answer({ firstName: Type.String(), lastName: Type.String() }),
      }),
    }),
    400: Message('You have already registered for this event'),
  },
}

export const listRegistered = {
  response: {
    200: Answer({ registrations: Type.Array(Answer({ ...registration, event: Event })) }),
  },
}

export const listRegistrations = {
  response: {
    200: Answer({
      event: Answer({ id: Type.String(), title: Type.String(), date: DateTime }),
      registrations: Type.Array(Answer({
        id: Type.String(), userId: Type.String(), name: Type.String(), email: Type.String(), registeredAt: DateTime,
      })),
    }),
    400: Message('Event ID is required'),
    403: Message('Not allowed to view registrations for this event'),
    404: Message('Event not found'),
  },
}
