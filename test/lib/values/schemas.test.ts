import { Type } from '@sinclair/typebox'

import { either, Enum, Message, Named, PlainText, ResponseObject, textsOf } from '#lib/values/schemas.js'
import t from '../../suite.ts'

t.test('Two errors combine: all texts, both names, and the fields of one are optional', async t => {
  const details = ResponseObject({ message: Enum(['Two']), details: Type.String() })
  t.equal(either(details, undefined), details)
  t.match(either(Message('One'), details), { required: ['message'], properties: { details: { type: 'string' } } })
  t.strictSame(textsOf(either(Message('One'), details)), ['One', 'Two'])
  t.equal(either(Named('One', Message('One')), Named('Two', details)).title, 'OneOrTwo')
  t.equal(either(Named('One', Message('One')), details).title, undefined)
  t.strictSame(textsOf(PlainText('One', 'Two')), ['One', 'Two'])
})
