import { requestIdOf, traceOf } from '#lib/http/trace-context.js'
import t from '../../suite.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'

t.test('A valid X-Request-Id is taken over', async t => {
  for (const id of ['7', '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b', 'Root=1-67891233-abcdef;Self=1', 'x'.repeat(128)]) {
    t.equal(requestIdOf(id), id)
  }
  for (const id of [undefined, '', 'x'.repeat(129), 'a b', 'a\nb', 'ä', ['a', 'b']]) {
    t.match(requestIdOf(id), /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/, String(id))
  }
})

t.test('A valid traceparent is taken over', async t => {
  for (const traceparent of [`00-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-00`, `cc-${TRACE}-${PARENT}-01-more`]) {
    t.strictSame(traceOf(traceparent), { traceId: TRACE, parentId: PARENT }, traceparent)
  }
  for (const traceparent of [
    undefined, '', '00', [`00-${TRACE}-${PARENT}-01`, ''] as unknown as string,
    `ff-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01-more`, `00-${TRACE}-${PARENT}`, `00-${TRACE}-${PARENT}-011`,
    `00-${'0'.repeat(32)}-${PARENT}-01`, `00-${TRACE}-${'0'.repeat(16)}-01`, `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${TRACE}1-${PARENT}-01`, ` 00-${TRACE}-${PARENT}-01`,
  ]) t.strictSame(traceOf(traceparent), undefined, String(traceparent))
})
