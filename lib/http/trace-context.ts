import { randomUUID } from 'node:crypto'

/** Printable ASCII without spaces, short enough for a log line. */
const REQUEST_ID = /^[!-~]{1,128}$/

/** Version, trace id, parent id, flags, and additions of later versions (W3C Trace Context, § 3.2). */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/

/** All zeros mean that an id is missing. */
const NONE = /^0+$/

/** Returns the id of a request: a valid `x-request-id`, or a new id. */
export function requestIdOf (given: string | string[] | undefined): string {
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID()
}

/** Returns the trace and the parent span in a valid `traceparent` header. */
export function traceOf (traceparent: string | string[] | undefined) {
  if (traceparent === undefined) return
  const [, version, traceId = '', parentId = '', more] = TRACEPARENT.exec(String(traceparent)) ?? []
  if (!version || version === 'ff' || (version === '00' && more)) return
  if (NONE.test(traceId) || NONE.test(parentId)) return
  return { traceId, parentId }
}
