import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Printable ASCII without spaces: what neither breaks a line of the log nor fills it. */
const REQUEST_ID = /^[!-~]{1,128}$/

/** Version, trace id, parent id and flags, and what later versions may add (W3C Trace Context, § 3.2). */
const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-[\da-f]{2}(-.*)?$/

/** Zeros stand for none. */
const NONE = /^0+$/

/** The id of a request: the one that it brings along as `x-request-id`, if that can be used, or else a new one. */
export function requestIdOf (given: string | string[] | undefined): string {
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID()
}

/** The request of Node's server. */
export type RawRequest = Pick<IncomingMessage, 'headers'>

/** The spans that requests have with tracing on. */
const spans = new WeakMap<RawRequest, { traceId: string, spanId: string }>()

/** Has the log name the span of a request. */
export function setSpan (request: RawRequest, { traceId, spanId }: { traceId: string, spanId: string }) {
  spans.set(request, { traceId, spanId })
}

/**
 * The trace that a request is part of, by its `traceparent`, and the span in it that the request was sent by; none when
 * there is no such header, or it is not written as it must be. With tracing on, also the request's own span.
 */
export function traceOf (request: RawRequest): { traceId?: string, parentId?: string, spanId?: string } {
  return { ...parentOf(request.headers.traceparent), ...spans.get(request) }
}

function parentOf (traceparent: string | string[] | undefined) {
  if (traceparent === undefined) return
  const [, version, traceId = '', parentId = '', more] = TRACEPARENT.exec(String(traceparent)) ?? []
  if (!version || version === 'ff' || (version === '00' && more)) return
  if (NONE.test(traceId) || NONE.test(parentId)) return
  return { traceId, parentId }
}
