import { Type } from '@sinclair/typebox'

import { Media, Message, RetryAfter } from '../../lib/values/schemas.ts'

/** Maximum number of lists per stream. */
export const MAX_LISTS = 8

export const NOT_A_LIST = 'The lists must be one to eight public lists, such as /events?limit=12'
export const TOO_MANY = 'Too many clients listen. Please try again later'

/** The lists that can be watched: the routes with `config.live`. */
export const LISTS = ['/agenda', '/blogs', '/club-pages', '/clubs', '/events', '/mentors', '/testimonials']
const PATHS = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(LISTS.map(list => `\`${list}\``))

const List = Type.Array(Type.String(), {
  minItems: 1,
  maxItems: MAX_LISTS,
  description: `The path of a public list with its query, URL-encoded: ${PATHS}. Repeat the parameter for further ` +
    'lists.',
  examples: [['/agenda?limit=12']],
})

export const watch = {
  operationId: 'watchLists',
  summary: 'Watch public lists',
  description: 'Returns a stream of server-sent events, which browsers read with `EventSource`. The service sends an ' +
    'event for each list when the stream opens, and when the list changes. Then get the list. The id of an event ' +
    'contains the entity tags that you know, so after a gap you hear of the lists that have changed in between. An ' +
    'event with the name `ping` arrives every 15 seconds. If none arrives, open a new stream. A stream ends after ' +
    'three to five minutes, and `EventSource` connects again. Try it with `curl --no-buffer` instead of this page.',
  checkedByHandler: {
    querystring: Type.Object({ list: List }),
    headers: Type.Object({
      'last-event-id': Type.Optional(Type.String({ description: 'The id of the last event. `EventSource` sends it.' })),
    }),
  },
  response: {
    200: Media('text/event-stream', {
      description: 'The data of an event is a JSON object: `list`, as you gave it, and `etag`, its entity tag.',
      examples: ['id: 3q2-7w\ndata: {"list":"/events?limit=12","etag":"\\"3q2-7w\\""}\n\n'],
    }),
    400: Message(NOT_A_LIST),
    503: { ...Message(TOO_MANY), headers: RetryAfter },
  },
}
