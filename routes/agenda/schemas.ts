import { Type } from '@sinclair/typebox'

import { AgendaEvent, agendaFields, seatFields } from '../../lib/agenda/fields.ts'
import { MAX_CLUBS } from '../../lib/clubs/members.ts'
import { idempotencyErrors, idempotencyHeaders } from '../../lib/database/idempotency.ts'
import {
  DateTime, EmailAddress, Enum, eventInputs, EventNotAllowed, EventNotFound, FullName, IdParam, Message,
  NullableCount, NullableDateTime, NullableString, OpaqueId, Reach, RegistrationsNotAllowed, ResponseObject, RetryAfter,
  TextInput,
} from '../../lib/values/schemas.ts'

const ONLINE_URL = { examples: ['https://meet.example.org/chess'] }

/** What organizers of the event see. */
const ManagedEvent = ResponseObject({ ...agendaFields, onlineUrl: NullableString(ONLINE_URL) }, {
  title: 'ManagedEvent',
})

const CURSOR = 'MjAyNi0wMS0zMVQwOTozMDowMC4wMDBaIDAxOTBhMWIyLWMzZDQtN2U1Zi04YTZiLTdjOGQ5ZTBmMWEyYg'

const params = Type.Object({ id: IdParam('The id of the event.') })

const TimeInput = (description: string) =>
  Type.String({ format: 'date-time', description, examples: DateTime.examples })

/** A field that `null` removes. */
const Detail = <T>(type: string, options: object) =>
  Type.Optional(Type.Unsafe<T | null>({ type: [type, 'null'], ...options }))

export const list = {
  operationId: 'listAgenda',
  summary: 'List events to come',
  description: 'Returns the events that have not ended, earliest first. An event without an end lasts two hours. ' +
    'With `from` and `to`, returns the events between these times.',
  querystring: Type.Object({
    club: Type.Optional(Type.Unsafe<string | string[]>({
      type: ['string', 'array'],
      items: { type: 'string' },
      maxItems: MAX_CLUBS,
      description: 'Only events of the club with this id. Repeat it for several clubs.',
      examples: OpaqueId.examples,
    })),
    from: Type.Optional(TimeInput('Only events that end after this time. The default is now.')),
    to: Type.Optional(TimeInput('Only events that begin before this time.')),
    limit: Type.Optional(Type.String({
      format: 'page-size',
      description: 'The number of events, up to 100. The default is 20.',
      examples: ['20'],
    })),
    cursor: Type.Optional(Type.String({
      format: 'cursor', description: '`next` of the previous page.', examples: [CURSOR],
    })),
  }),
  response: {
    200: ResponseObject({
      events: Type.Array(AgendaEvent),
      next: NullableString({ description: 'The cursor of the next page, or `null`.', examples: [CURSOR] }),
    }),
  },
}

export const get = {
  operationId: 'getAgendaEvent',
  summary: 'Get an event',
  description: 'Also returns past events.',
  params,
  response: { 200: ResponseObject({ event: AgendaEvent }), 404: EventNotFound },
}

const EventDate = TimeInput('When the event begins.')
const End = Type.String({ format: 'date-time', examples: ['2030-01-31T11:30:00.000Z'] })

const DETAILS = {
  place: Detail<string>('string', { format: 'visible', maxLength: 500, examples: ['Library, room B12'] }),
  onlineUrl: Detail<string>('string', {
    format: 'web-url', maxLength: 2000, description: 'Only people with a seat and organizers see it.', ...ONLINE_URL,
  }),
  capacity: Detail<number>('integer', {
    minimum: 1, maximum: 1_000_000, description: 'The number of seats. `null` means no limit.', examples: [30],
  }),
  opensAt: Detail<string>('string', {
    format: 'date-time', description: 'When registration opens.', examples: ['2030-01-24T12:00:00.000Z'],
  }),
  closesAt: Detail<string>('string', {
    format: 'date-time',
    description: 'When registration closes, after it opens. People who are registered can still say that they do not ' +
      'come, or come after all.',
    examples: ['2030-01-30T12:00:00.000Z'],
  }),
}

/** The fields of an event, and of its details, that are stored as they are given. */
export const STORED_FIELDS = [...Object.keys(eventInputs) as (keyof typeof eventInputs)[], 'date'] as const
export const STORED_DETAILS = Object.keys(DETAILS) as (keyof typeof DETAILS)[]

const details = {
  endsAt: Detail<string>('string', {
    format: 'date-time',
    description: 'When the event ends, after its start. It moves along when only the date of the event changes.',
    examples: ['2099-01-31T11:30:00.000Z'],
  }),
  ...DETAILS,
  drawAt: Detail<string>('string', {
    format: 'date-time',
    description: 'When the seats are drawn. It needs a number of seats. It must be in the future, after registration ' +
      'opens, and not after the start of the event.',
    examples: ['2030-01-25T12:00:00.000Z'],
  }),
}

export const create = {
  operationId: 'createAgendaEvent',
  summary: 'Create an event with all its details',
  description: 'The event belongs to the club that you lead. `POST /events` creates one without details.',
  headers: idempotencyHeaders,
  body: Type.Object({ ...eventInputs, date: EventDate, ...details }, { title: 'NewAgendaEvent' }),
  response: {
    201: ResponseObject({ event: ManagedEvent }),
    400: Message('You must be a club head to create an event'),
    403: EventNotAllowed,
    ...idempotencyErrors,
  },
}

/** Error messages if a draw can no longer change. */
export const SEATS_DRAWN = 'The seats have been drawn already'
export const DRAW_NEEDED = 'People take part in the draw, so you can move it, but not cancel it'

export const update = {
  operationId: 'updateAgendaEvent',
  summary: 'Change an event and its details',
  description: 'Changes all given fields or, after an error, none. Club heads may change events of their own club. ' +
    'Admins may change any event. Missing fields stay unchanged, and `null` removes a detail. If the room becomes ' +
    'smaller, nobody loses a seat. If it grows, the people who wait the longest get a seat and an email. You can ' +
    'move a draw until the seats are drawn, and cancel it as long as nobody takes part in it.',
  params,
  body: Type.Object({ ...Type.Partial(Type.Object({ ...eventInputs, date: EventDate })).properties, ...details }, {
    title: 'AgendaEventChanges',
  }),
  response: {
    200: ResponseObject({ event: ManagedEvent }),
    403: EventNotAllowed,
    404: EventNotFound,
    409: Message(SEATS_DRAWN, DRAW_NEEDED),
  },
}

export const copy = {
  operationId: 'copyAgendaEvent',
  summary: 'Repeat an event',
  description: 'Creates a copy of the event for each date, for example a weekly series. The copies have the same ' +
    'place and seats, but no registrations. The times of registration and of the draw move along with the date, and ' +
    'stay at the same local time. No draw is later than the start of its copy. A copy has no draw if the draw would ' +
    'be past, or before registration opens. Without `ends`, the copies last as long as the event. Past dates are ' +
    'accepted, and dates at which the club has an event. So before you send them, compare them with `GET /agenda`. ' +
    'All copies together can have 1 MB.',
  params,
  headers: idempotencyHeaders,
  body: Type.Object({
    dates: Type.Array(TimeInput('When the copy begins.'), { minItems: 1, maxItems: 52, uniqueItems: true }),
    ends: Type.Optional(Type.Array(End, {
      description: 'The end of each copy, in the order of `dates`. It lets an evening end at the same local time in ' +
        'summer and in winter, also on the days when clocks change.',
    })),
  }, { title: 'EventCopies' }),
  response: {
    201: ResponseObject({ events: Type.Array(AgendaEvent) }),
    403: EventNotAllowed,
    404: EventNotFound,
    ...idempotencyErrors,
  },
}

const Hash = (description: string) => ({
  description, examples: ['5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9'],
})

export const getDraw = {
  operationId: 'getDraw',
  summary: 'Get the draw of seats of an event',
  description: 'Everybody can check a draw: `commitment` is the SHA-256 of `seed` as hexadecimal digits, and public ' +
    'before the draw. `order` is sorted by the SHA-256 of the seed, a space and the id of the registration.',
  params,
  response: {
    200: ResponseObject({
      draw: ResponseObject({
        drawAt: DateTime,
        drawnAt: NullableDateTime('`null` until the seats are drawn.'),
        commitment: Type.String(Hash('Is the same before and after the draw.')),
        seed: NullableString(Hash('`null` until the seats are drawn.')),
        seats: NullableCount('The number of seats for the people in `order`, from its front; `null` for no limit.', 30),
        order: Type.Unsafe<string[] | null>({
          type: ['array', 'null'],
          items: OpaqueId,
          description: 'The ids of the registrations of all people who took part and come; `null` until the seats ' +
            'are drawn.',
        }),
      }, { title: 'Draw' }),
    }),
    404: Message('Event not found', 'There is no draw'),
  },
}

export const listSeats = {
  operationId: 'listSeats',
  summary: 'List the seats of an event',
  description: 'People with a seat come first, then people who wait or take part in a draw, then people who do not ' +
    'come. `answeredAt` tells when a person last said whether they come, `isReached` whether messages reach them. ' +
    '`cancellation` counts the people that an email reaches, and the others, if you delete the event before its end.',
  params,
  response: {
    200: ResponseObject({
      event: ManagedEvent,
      seats: Type.Array(ResponseObject({
        registrationId: OpaqueId,
        userId: OpaqueId,
        name: FullName,
        email: EmailAddress,
        registeredAt: DateTime,
        answeredAt: DateTime,
        ...seatFields,
        isReached: Type.Boolean(),
      }, { title: 'Seat' })),
      cancellation: Reach,
    }),
    403: RegistrationsNotAllowed,
    404: EventNotFound,
  },
}

export const removeSeat = {
  operationId: 'removeSeat',
  summary: 'Take a person off the list of an event',
  description: 'Deletes the registration. The person gets an email, and may register again.',
  params: Type.Object({
    id: IdParam('The id of the event.'),
    registrationId: IdParam('The id of the registration.'),
  }),
  response: {
    200: Message('Registration deleted successfully'),
    403: EventNotAllowed,
    404: Message('Event not found', 'Registration not found'),
  },
}

export const TOO_MANY_MESSAGES = 'Too many messages, please try again later'

export const sendMessage = {
  operationId: 'sendMessage',
  summary: 'Send an email to the attendees of an event',
  description: 'Attendees have a seat, wait for one, or take part in a draw. Replies go to your email address if it ' +
    'is verified. Club heads may write about events of their own ' +
    'club. Admins may write about any event. By default, the sixth message within 15 minutes gets a 429.',
  params,
  headers: idempotencyHeaders,
  body: Type.Object({
    subject: TextInput({ format: 'visible', minLength: 3, maxLength: 200, examples: ['Chess Night: bring a board'] }),
    text: TextInput({
      format: 'visible', minLength: 10, maxLength: 10_000, examples: ['We have fewer boards than guests this time.'],
    }),
  }, { title: 'EventMessage' }),
  response: {
    202: ResponseObject({ message: Enum(['The message is on its way']), reach: Reach }, { title: 'SentMessage' }),
    403: RegistrationsNotAllowed,
    404: EventNotFound,
    ...idempotencyErrors,
    429: { ...Message(TOO_MANY_MESSAGES), headers: RetryAfter },
  },
}
