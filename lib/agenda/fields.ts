import { Type } from '@sinclair/typebox'

import { ClubCard, Count, Enum, eventFields, NullableString, ResponseObject } from '../values/schemas.ts'
import { SEAT_STATES } from './seats.ts'

/** An integer or null in a response. */
const NullableCount = (description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], description, examples: [3] })

/** A time or null in a response. */
const NullableTime = (description: string) =>
  NullableString({ format: 'date-time', description, examples: ['2030-01-24T12:00:00.000Z'] })

/** The fields of an event with its public details; `agendaColumns` selects them. */
export const agendaFields = {
  ...eventFields,
  club: ClubCard,
  registrationCount: Count,
  comingCount: Count,
  endsAt: NullableString({ format: 'date-time', examples: ['2030-01-31T11:30:00.000Z'] }),
  place: NullableString({ examples: ['Library, room B12'] }),
  hasOnlineUrl: Type.Boolean({ description: 'Whether people with a seat can take part online.' }),
  capacity: NullableCount('The number of seats; `null` for no limit.'),
  seatsLeft: NullableCount('The number of free seats; `null` for no limit, and until the seats are drawn.'),
  waitingCount: Type.Integer({ description: 'The number of people who wait for a seat.', examples: [0] }),
  opensAt: NullableTime('When registration opens; `null` if it always was.'),
  closesAt: NullableTime('When registration closes; `null` if it never does.'),
  drawAt: NullableTime('When the seats are to be drawn; `null` without a draw.'),
  drawnAt: NullableTime('When the seats were drawn; `null` until then.'),
}

export const AgendaEvent = ResponseObject(agendaFields, { title: 'AgendaEvent' })

/** The fields of a seat. */
export const seatFields = {
  state: Enum(SEAT_STATES, {
    description: '`seated`, `waiting` for a seat, `drawing`: takes part in the draw of seats, or `declined`: the ' +
      'person does not come.',
  }),
  position: NullableCount('The place among the people who wait, from 1; `null` if the person does not wait.'),
}
