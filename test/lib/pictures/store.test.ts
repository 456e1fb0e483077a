import { setTimeout as sleep } from 'node:timers/promises'

import { TOO_MANY_UPLOADS } from '#lib/pictures/refusals.js'
import { createPictureStore } from '#lib/pictures/store.js'
import { build, person } from '../../helper.ts'
import t from '../../suite.ts'

t.test('An upload whose client has gone leaves the queue at once', async t => {
  const app = await build(t)
  const { id: userId } = await person(app)
  let begin!: () => void
  let fail!: (error: Error) => void
  const begun = new Promise<void>(resolve => { begin = resolve })
  const converted = new Promise<never>((_resolve, reject) => { fail = reject })
  const { storePicture } = createPictureStore(app.sql, app.config, () => {
    begin()
    return converted
  })
  const upload = (signal: AbortSignal, admitted = () => {}) => storePicture({
    bytes: Buffer.alloc(1),
    userId,
    client: { network: 'a' },
    signal,
    admit: work => work().finally(admitted),
  })
  const first = upload(new AbortController().signal)
  await begun
  const gone = new AbortController()
  const second = upload(gone.signal)
  await sleep(500)
  gone.abort()
  await t.rejects(second, { message: TOO_MANY_UPLOADS })
  const early = new AbortController()
  await t.rejects(upload(early.signal, () => early.abort()), { message: TOO_MANY_UPLOADS }, 'gone before it waits')
  fail(new Error('No picture'))
  await t.rejects(first, { message: 'No picture' })
})
