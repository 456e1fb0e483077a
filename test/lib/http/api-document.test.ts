import { finishDocument } from '#lib/http/api-document.js'
import t from '../../suite.ts'

/** The converted schema of a parameter in a document. */
function finished (schema: object) {
  const paths = { '/': { get: { parameters: [{ name: 'x', schema }], responses: {} } } }
  return finishDocument({ paths, components: { schemas: {} } }).paths['/'].get.parameters[0].schema
}

/** A document of operations with these parts, one for each path. */
const documentOf = (...operations: object[]) => finishDocument({
  paths: Object.fromEntries(operations.map((operation, index) =>
    [`/${index}`, { get: { responses: {}, ...operation } }])),
  components: { schemas: {} },
})

t.test('Repeated responses are listed once, by the name of their schema or their message', async t => {
  const response = (schema: object) => ({ description: 'No', content: { 'application/json': { schema } } })
  const named = (name: string) => response({ $ref: `#/components/schemas/${name}` })
  const saying = (message: object) => response({ properties: { message } })
  const [known, empty] = [named('Event'), { description: 'Up to date' }]
  const plain = { description: 'No', content: {} }
  const failure = () => saying({ enum: ['Not here, sorry'] })
  const first = { 200: known, 304: empty, 401: named('Once'), 404: named('NotFound'), 409: plain, 500: failure() }
  const second = { 304: empty, 400: saying({ examples: ['No', 'Too long'] }), 404: named('NotFound'), 409: plain }
  const third = { 400: saying({ examples: ['No', 'Too long'] }), 500: failure() }
  const { paths, components } = documentOf(...[first, second, third].map(responses => structuredClone({ responses })))
  const reference = (name: string) => ({ $ref: `#/components/responses/${name}` })
  t.strictSame(paths['/0'].get.responses, {
    ...first, 304: reference('NotModified'), 404: reference('NotFound'), 500: reference('NotHereSorry'),
  })
  t.strictSame(paths['/2'].get.responses, { 400: reference('TooLong'), 500: reference('NotHereSorry') })
  t.strictSame(Object.keys(components.responses), ['NotFound', 'NotHereSorry', 'NotModified', 'TooLong'])
  t.strictSame(components.responses.NotFound, named('NotFound'))
})

t.test('Repeated parameters and headers are listed once, and different ones of a name stay', async t => {
  const id = (description: string) => ({ name: 'id', description })
  const [page, tag] = [{ name: 'page', schema: { type: 'string' } }, { schema: { type: 'string' } }]
  const other = { ...page, schema: { type: 'boolean' } }
  const responses = () => structuredClone({ 200: { headers: { ETag: tag } } })
  const { paths, components } = documentOf(
    { parameters: [id('The id of the event.'), id('The id of the club.'), page], responses: responses() },
    { parameters: [id('The id of the event.'), other], responses: responses() }
  )
  const reference = { $ref: '#/components/parameters/TheIdOfTheEvent' }
  t.strictSame(paths['/0'].get.parameters, [reference, id('The id of the club.'), page])
  t.strictSame(paths['/1'].get.parameters, [reference, other])
  t.strictSame(components.parameters, { TheIdOfTheEvent: id('The id of the event.') })
  t.strictSame(paths['/1'].get.responses[200].headers, { ETag: { $ref: '#/components/headers/ETag' } })
  t.strictSame(components.headers, { ETag: tag })
})

t.test('Enumerations are strings, and formats are standard ones', async t => {
  t.strictSame(finished({ enum: ['a', 'b'] }), { type: 'string', enum: ['a', 'b'] })
  t.strictSame(finished({ enum: ['a'] }), { type: 'string', const: 'a' })
  t.strictSame(finished({ type: 'string', format: 'date-time' }), { type: 'string', format: 'date-time' })
  t.strictSame(finished({ type: 'string', format: 'url' }), { type: 'string', format: 'uri' })
  t.strictSame(finished({ type: 'string', format: 'text' }), { type: 'string' })
  t.strictSame(finished({ type: 'integer' }), { type: 'integer', format: 'int64' })
})

t.test('Examples are not converted', async t => {
  const examples = [{ type: 'integer', enum: ['x'], nothing: null }]
  t.strictSame(finished({ type: 'object', examples, default: null }), { type: 'object', examples, default: null })
})
