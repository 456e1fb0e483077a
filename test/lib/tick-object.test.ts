import { executionAsyncResource } from 'node:async_hooks'

import t from 'tap'

import { keepTickObject } from '#lib/tick-object.js'

t.test('an object is kept that is like those of process.nextTick, and no other', async t => {
  const kept = keepTickObject()!
  const later = await new Promise<object>(resolve => process.nextTick(() => resolve(executionAsyncResource())))
  t.strictSame(Reflect.ownKeys(kept), Reflect.ownKeys(later), 'of the same shape')
  t.not(kept, later)
  t.not(keepTickObject(), kept, 'a second call keeps another')
})
