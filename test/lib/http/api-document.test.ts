import { finishDocument } from '#lib/http/api-document.js'
import t from '../../suite.ts'

/** The converted schema of a parameter in a document. */
function finished (schema: object) {
  const document = { paths: { '/': { get: { parameters: [{ schema }], responses: {} } } }, components: { schemas: {} } }
  return finishDocument(document).paths['/'].get.parameters[0].schema
}

t.test('Errors with a named schema, and responses without a body, are listed once', async t => {
  const error = (name: string, description = name) => (
    { description, content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } }
  )
  const [found, empty, plain] = [error('Event'), { description: 'Up to date' }, { description: 'No', content: {} }]
  const document = (...responses: object[]) => ({
    paths: Object.fromEntries(responses.map((responses, index) => [`/${index}`, { get: { responses } }])),
    components: { schemas: {} },
  })
  const { paths, components } = finishDocument(document(
    { 200: found, 304: empty, 404: error('NotFound'), 500: plain }, { 404: error('NotFound') }
  ))
  const [notFound, notModified] = ['NotFound', 'NotModified'].map(name => ({ $ref: `#/components/responses/${name}` }))
  t.strictSame(paths['/0'].get.responses, { 200: found, 304: notModified, 404: notFound, 500: plain })
  t.strictSame(paths['/1'].get.responses, { 404: notFound })
  t.strictSame(components.responses, { NotFound: error('NotFound'), NotModified: empty })
  t.throws(() => finishDocument(document({ 404: error('NotFound') }, { 410: error('NotFound', 'Gone') })), {
    message: 'Two different responses have the name NotFound',
  })
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
