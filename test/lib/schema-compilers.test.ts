import Fastify from 'fastify'
import t from 'tap'

import { shareCompiled } from '#lib/schema-compilers.js'

const name = () => ({ type: 'object', properties: { name: { type: 'string' } }, required: ['name'] })
const age = { type: 'object', properties: { age: { type: 'integer' } } }
const route = (schema: unknown) => ({ schema, method: 'POST', url: '/', httpPart: 'body', httpStatus: '200' }) as never

t.test('Equal schemas are compiled once, and others by themselves', async t => {
  const { compilersFactory } = shareCompiled()
  for (const factory of [compilersFactory!.buildValidator!, compilersFactory!.buildSerializer!]) {
    const [compile, ofAnotherApp] = [1, 2].map(() => factory({}, { customOptions: {} } as never))
    const compiled = compile!(route(name()))
    t.type(compiled, 'function')
    t.equal(compile!(route(name())), compiled)
    t.equal(ofAnotherApp!(route(name())), compiled)
    t.not(compile!(route(age)), compiled)
  }
})

t.test('Routes and apps that share them check and answer each for itself', async t => {
  const schemaController = shareCompiled()
  for (const path of ['/one', '/other']) {
    const app = Fastify({ schemaController })
    t.teardown(() => app.close())
    const schema = { body: name(), response: { 200: name() } }
    for (const end of ['/a', '/b']) app.post(path + end, { schema }, async () => ({ name: path + end, secret: 'kept' }))
    for (const end of ['/a', '/b']) {
      const post = (payload: object) => app.inject({ method: 'POST', url: path + end, payload })
      t.strictSame((await post({ name: 'Ada' })).json(), { name: path + end })
      const { statusCode, body } = await post({})
      t.equal(statusCode, 400)
      t.match(body, /body must have required property 'name'/)
    }
  }
})
