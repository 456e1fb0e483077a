import { randomUUID } from 'node:crypto'

import t from 'tap'

import { assertInvalid, assertResponse, shown } from '../../assertions.ts'
import { bearerOfJson, inject } from '../../helper.ts'
import { addClub, addMentor, admin, app, FIELDS, LONG, NO_CLUB_ID, stored } from './fixtures.ts'

t.test('POST /mentors creates a mentor', async t => {
  const club = await addClub({ image_url: 'https://example.org/club.png' })
  const body = {
    name: 'Ada',
    expertise: 'Mathematics',
    imageUrl: 'https://example.org/ada.png',
    networkUrl: 'https://network.example/ada',
    clubId: club.id,
  }
  const response = await admin.inject('POST', '/mentors', { ...body, id: 'mine', likeCount: 7, club: { name: 'x' } })
  const { id } = response.json().mentor
  t.type(id, 'string')
  assertResponse(t, response, 201, { mentor: { id, ...body, club: { name: club.name } } })
  t.strictSame({ ...await stored(id) }, {
    id,
    name: 'Ada',
    expertise: 'Mathematics',
    image_url: 'https://example.org/ada.png',
    network_url: 'https://network.example/ada',
    club_id: club.id,
  })
  const again = await admin.inject('POST', '/mentors/', body)
  t.equal(again.statusCode, 201, 'a duplicate, with a trailing slash')
  t.not(again.json().mentor.id, id)
})

t.test('POST /mentors stores valid values unchanged', async t => {
  const { id: clubId } = await addClub()
  const body = { name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId }
  for (const [field, { takes }] of Object.entries(FIELDS)) {
    for (const value of takes) {
      const response = await admin.inject('POST', '/mentors', { ...body, [field]: value })
      t.equal(response.statusCode, 201, `${field} ${shown(value)}`)
      t.equal(response.json().mentor[field], value)
    }
  }
})

t.test('POST /mentors stores a missing or null networkUrl as an empty string', async t => {
  const { id: clubId } = await addClub()
  for (const networkUrl of [undefined, null]) {
    const response = await admin.inject('POST', '/mentors', {
      name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId, networkUrl,
    })
    const { mentor } = response.json()
    t.strictSame([response.statusCode, mentor.networkUrl], [201, ''])
    t.equal((await stored(mentor.id))?.network_url, '')
  }
})

t.test('POST /mentors rejects invalid values', async t => {
  const { id: clubId } = await addClub()
  const body = { name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId }
  for (const [field, { refuses }] of Object.entries({ ...FIELDS, clubId: NO_CLUB_ID })) {
    for (const value of refuses) {
      const response = await admin.inject('POST', '/mentors', { ...body, [field]: value })
      assertInvalid(t, response, [field], `${field} ${shown(value)}`)
    }
  }
  for (const field of ['name', 'expertise', 'clubId']) {
    assertInvalid(t, await admin.inject('POST', '/mentors', { ...body, [field]: undefined }), [field], `no ${field}`)
  }
  assertInvalid(t, await admin.inject('POST', '/mentors', {}), ['name', 'expertise', 'clubId'], 'every issue')
  const bad = { name: '', expertise: 'x', clubId: 5, imageUrl: 'x', networkUrl: 5 }
  assertInvalid(t, await admin.inject('POST', '/mentors', bad), Object.keys(bad), 'every issue')
  const [{ count } = {}] = await app.sql`SELECT count(*)::int FROM mentors WHERE club_id = ${clubId}`
  t.equal(count, 0, 'nothing is stored')
})

t.test('POST and PUT require an object', async t => {
  const headers = bearerOfJson(admin.token)
  for (const [method, url] of [['POST', '/mentors'], ['PUT', `/mentors/${await addMentor()}`]] as const) {
    for (const body of ['[]', 'null', '"Ada"', '5', 'true', '[{"name":"Ada"}]']) {
      assertInvalid(t, await inject(app, method, url, body, headers), [''], `${method} ${body}`)
    }
  }
  assertInvalid(t, await admin.inject('POST', '/mentors'), ['clubId', 'expertise', 'name'], 'POST without a body')
})

t.test('POST /mentors requires an imageUrl', async t => {
  const { id: clubId } = await addClub()
  const message = 'All fields are required'
  const body = { name: 'Ada', expertise: 'Mathematics', clubId }
  assertResponse(t, await admin.inject('POST', '/mentors', body), 400, { message })
  assertResponse(t, await admin.inject('POST', '/mentors', { ...body, clubId: 'unknown' }), 400, { message },
    'before the club is looked for')
  assertInvalid(t, await admin.inject('POST', '/mentors', { ...body, name: '' }), ['name'], 'after validation')
})

t.test('POST /mentors returns 500 for an unknown club', async t => {
  const { id } = await addClub()
  const body = { name: 'Ada', expertise: 'Mathematics', imageUrl: 'https://example.org' }
  for (const clubId of [randomUUID(), 'not-a-uuid', ' ', LONG, id.toUpperCase(), `${id} `]) {
    const response = await admin.inject('POST', '/mentors', { ...body, clubId })
    assertResponse(t, response, 500, { message: 'Error creating mentor' }, shown(clubId))
  }
})

t.test('A lone surrogate in text is replaced or rejected', async t => {
  const { id: clubId } = await addClub()
  const response = await admin.inject('POST', '/mentors', {
    name: 'Ada \ud800', expertise: 'Mathematics', imageUrl: 'https://example.org', clubId,
  })
  if (response.statusCode === 201) t.equal(response.json().mentor.name, 'Ada \ufffd')
  else assertInvalid(t, response, ['name'])
})
