import t from 'tap'

import { build, inject, person } from '../helper.ts'

const app = await build(t)
const admin = await person(app, 'ADMIN')

/** What may be stored, and how. */
const STORED: Record<string, string> = {
  '/blogs': 'public, s-maxage=120, stale-while-revalidate=300',
  '/mentors': 'public, s-maxage=300, stale-while-revalidate=600',
  '/events': 'public, s-maxage=60, stale-while-revalidate=120',
  '/testimonials': 'no-cache',
}

t.test('every answer tells a browser to do nothing with it', async t => {
  for (const path of ['/events', '/auth/me', '/no/such/path', '/testimonials?limit=x']) {
    const { headers } = await inject(app, 'GET', path)
    t.equal(headers['content-security-policy'], "default-src 'none';frame-ancestors 'none'", path)
    t.equal(headers['x-content-type-options'], 'nosniff', path)
    t.equal(headers['x-powered-by'], undefined, path)
  }
})

t.test('what is about persons is stored by nobody', async t => {
  const paths = [
    '/clubs', '/auth/google/start', '/users', '/users/analytics', '/blogs/me', '/blogs/admin', '/mentors/liked',
    '/events/registered', '/events/no-such-event/registrations', '/no/such/path', '/blogs/no-such-blog',
    '/testimonials?limit=x', '/events?limit=-1',
  ]
  for (const path of paths) {
    const { headers } = await admin.inject('GET', path)
    t.equal(headers['cache-control'], 'no-store', path)
  }
  const account = { email: 'ada@example.org', password: 'correct horse', firstName: 'Ada', lastName: 'Lovelace' }
  for (const operation of ['register', 'login', 'login?wrong']) {
    const { headers } = await inject(app, 'POST', `/auth/${operation}`, account)
    t.equal(headers['cache-control'], 'no-store', operation)
  }
  t.equal((await admin.inject('GET', '/auth/me')).headers['cache-control'],
    'no-store, no-cache, must-revalidate, private')
})

t.test('public lists may be stored, as long as the contract says', async t => {
  for (const [path, cacheControl] of Object.entries(STORED)) {
    t.equal((await inject(app, 'GET', path)).headers['cache-control'], cacheControl, path)
  }
})
