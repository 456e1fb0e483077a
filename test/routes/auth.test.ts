import t from 'tap'

import { build, inject, person } from '../helper.ts'

const app = await build(t)

t.test('me', async t => {
  const ada = await person(app)
  const response = await ada.inject('GET', '/auth/me')
  t.equal(response.statusCode, 200)
  t.equal((await inject(app, 'GET', '/auth/me')).statusCode, 401)
})
