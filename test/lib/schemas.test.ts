import { Type } from '@sinclair/typebox'

import { ResponseObject, Enum, exampleOf, examplesOf, Message, PlainText } from '#lib/schemas.js'
import t from '../suite.ts'

t.test('An example is declared by the schema, or composed of the examples of its parts', async t => {
  const name = Type.String({ examples: ['Ada', 'Grace'] })
  const table: [schema: Parameters<typeof exampleOf>[0], example: unknown][] = [
    [name, 'Ada'],
    [Enum(['asc', 'desc']), 'asc'],
    [Type.Literal('Done'), 'Done'],
    [Type.Array(name), ['Ada']],
    [Type.Union([name, Type.Null()]), 'Ada'],
    [Type.Object({ name, tags: Type.Optional(Type.Array(name)) }), { name: 'Ada', tags: ['Ada'] }],
    [Type.Object({ name }, { examples: [{ name: 'Edsger' }] }), { name: 'Edsger' }],
  ]
  for (const [schema, example] of table) t.strictSame(exampleOf(schema), example)
})

t.test('A response has an example for each of its texts', async t => {
  const id = Type.String({ examples: ['7'] })
  t.strictSame(examplesOf(Message('One', 'Two')), [{ message: 'One' }, { message: 'Two' }])
  t.strictSame(examplesOf(PlainText('One', 'Two')), ['One', 'Two'])
  t.strictSame(examplesOf(ResponseObject({ id, message: Enum(['One', 'Two']) })), [
    { id: '7', message: 'One' }, { id: '7', message: 'Two' },
  ])
  t.strictSame(examplesOf(ResponseObject({ id, message: Type.Literal('One') })), [{ id: '7', message: 'One' }])
  t.strictSame(examplesOf(ResponseObject({ id })), [{ id: '7' }])
  t.strictSame(examplesOf(ResponseObject({ id }, { examples: [{ id: '8' }, { id: '9' }] })), [{ id: '8' }, { id: '9' }])
})
