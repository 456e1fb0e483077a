import { finishDocument } from '#lib/api-document.js'
import t from '../suite.ts'

/** A document with a path for each of these schemas. */
const document = (...schemas: object[]) => ({
  openapi: '3.1.0',
  paths: Object.fromEntries(schemas.map((schema, index) => [`/${index}`, { get: { parameters: [{ schema }] } }])),
  components: { securitySchemes: {} },
})

/** The converted schema, and the components. */
function finished (schema: object) {
  const { paths, components } = finishDocument(document(schema))
  return [paths['/0'].get.parameters[0].schema, components.schemas]
}

t.test('Schemas with titles become components, including nested ones', async t => {
  const inner = { title: 'Inner', type: 'string', examples: ['x'] }
  t.strictSame(finished({
    title: 'Outer',
    type: 'object',
    properties: { title: inner, list: { type: 'array', items: inner }, either: { anyOf: [inner, { type: 'null' }] } },
  }), [
    { $ref: '#/components/schemas/Outer' },
    {
      Inner: { type: 'string', examples: ['x'] },
      Outer: {
        type: 'object',
        properties: {
          title: { $ref: '#/components/schemas/Inner' },
          list: { type: 'array', items: { $ref: '#/components/schemas/Inner' } },
          either: { anyOf: [{ $ref: '#/components/schemas/Inner' }, { type: 'null' }] },
        },
      },
    },
  ])
})

t.test('Equal schemas may share a title', async t => {
  const schema = { title: 'Name', type: 'string' }
  t.strictSame(finishDocument(document(schema, { ...schema })).components.schemas, { Name: { type: 'string' } })
  t.throws(() => finishDocument(document(schema, { ...schema, minLength: 1 })), {
    message: 'Two different schemas have the name Name',
  })
})

t.test('Errors of several operations become components, named by their descriptions', async t => {
  const error = (description: string, content = {}) => ({ description, content })
  const late = error('`Too late, please try again later` or `Over`')
  const once = error('Once')
  const { paths, components } = finishDocument({
    paths: {
      '/a': { get: { responses: { 200: error('OK'), 404: error('`Not found`'), 503: late, 500: once } } },
      '/b': { get: { responses: { 200: error('OK'), 404: error('`Not found`') } }, put: { responses: { 503: late } } },
    },
  })
  const [notFound, tooLate] = ['NotFound', 'TooLateOrOver'].map(name => ({ $ref: `#/components/responses/${name}` }))
  t.strictSame(paths['/a'].get.responses, { 200: error('OK'), 404: notFound, 503: tooLate, 500: once })
  t.strictSame(paths['/b'].put.responses, { 503: tooLate })
  t.strictSame(components.responses, { NotFound: error('`Not found`'), TooLateOrOver: late })
  const other = error('`Not found`', { 'text/plain': {} })
  const responses = [error('`Not found`'), other].flatMap(response => [response, response])
  t.throws(() => finishDocument({ paths: responses.map(response => ({ get: { responses: { 404: response } } })) }), {
    message: 'Two different responses have the name NotFound',
  })
})

t.test('Enumerations are strings, and formats are standard ones', async t => {
  t.strictSame(finished({ enum: ['a', 'b'] })[0], { type: 'string', enum: ['a', 'b'] })
  t.strictSame(finished({ type: 'string', format: 'date-time' })[0], { type: 'string', format: 'date-time' })
  t.strictSame(finished({ type: 'string', format: 'url' })[0], { type: 'string', format: 'uri' })
  t.strictSame(finished({ type: 'string', format: 'text' })[0], { type: 'string' })
  t.strictSame(finished({ type: 'integer' })[0], { type: 'integer', format: 'int64' })
})

t.test('Examples are not converted', async t => {
  const examples = { first: { value: { schema: { title: 'X' }, nothing: null } } }
  const { paths, components } = finishDocument({ paths: { '/': { get: { examples, deprecated: null } } } })
  t.strictSame(paths['/'].get, { examples, deprecated: null })
  t.strictSame(components.schemas, {})
})
