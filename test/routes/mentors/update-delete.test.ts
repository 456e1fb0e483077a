import { randomUUID } from 'node:crypto'

import t from 'tap'

import { assertInvalid, assertResponse, shown, unknownPaths } from '../../assertions.ts'
import { bearerOfJson, inject, person } from '../../helper.ts'
import { addClub, addMentor, admin, app, FIELDS, like, likesOf, LONG, NO_CLUB_ID, stored } from './fixtures.ts'

t.test('PUT /mentors/:id changes only the given fields', async t => {
  const [club, other] = [await addClub({ image_url: 'https://example.org/club.png' }), await addClub()]
  const id = await addMentor({ club_id: club.id, network_url: 'ada' })
  await like(id, admin)
  let mentor = {
    id,
    name: 'Ada',
    expertise: 'Mathematics',
    imageUrl: 'https://example.org/ada.png',
    networkUrl: 'ada',
    clubId: club.id,
    club: { name: club.name },
  }
  assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, {}), 200, { mentor }, 'an empty object')
  for (const change of [
    { name: 'Bob' },
    { expertise: 'Go' },
    { imageUrl: 'data:,bob' },
    { networkUrl: 'bob' },
    { networkUrl: '' },
    { name: 'Eve', expertise: 'Chess', imageUrl: 'data:,eve', networkUrl: 'eve' },
  ]) {
    mentor = { ...mentor, ...change }
    assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, change), 200, { mentor }, shown(change))
    assertResponse(t, await admin.inject('PUT', `/mentors/${id}/`, {}), 200, { mentor },
      'it stays, and with a trailing slash')
  }
  mentor = { ...mentor, clubId: other.id, club: { name: other.name } }
  assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, { clubId: other.id }), 200, { mentor }, 'another club')
  assertResponse(t,
    await admin.inject('PUT', `/mentors/${id}`, { id: randomUUID(), likeCount: 9, club: { name: 'x' } }),
    200, { mentor }, 'unknown fields')
  t.strictSame(await likesOf(id), [admin.id], 'likes are kept')
})

t.test('PUT /mentors/:id changes only this mentor', async t => {
  const [ada, bob] = [await addMentor(), await addMentor({ name: 'Bob' })]
  await admin.inject('PUT', `/mentors/${ada}`, { name: 'Eve', networkUrl: 'eve' })
  t.match(await stored(bob), { name: 'Bob', network_url: '' })
})

t.test('PUT /mentors/:id stores valid values unchanged', async t => {
  const before = { name: 'Before', expertise: 'Before', image_url: 'https://example.org/old', network_url: 'old' }
  for (const [field, { takes }] of Object.entries(FIELDS)) {
    for (const value of takes) {
      // A row that differs in every field, so that each update changes it.
      const id = await addMentor(before)
      const response = await admin.inject('PUT', `/mentors/${id}`, { [field]: value })
      t.equal(response.statusCode, 200, `${field} ${shown(value)}`)
      t.equal(response.json().mentor[field], value)
    }
  }
})

t.test('PUT /mentors/:id rejects invalid values', async t => {
  const id = await addMentor()
  const before = await stored(id)
  for (const [field, { refuses }] of Object.entries({ ...FIELDS, clubId: NO_CLUB_ID })) {
    for (const value of refuses) {
      const response = await admin.inject('PUT', `/mentors/${id}`, { [field]: value })
      assertInvalid(t, response, [field], `${field} ${shown(value)}`)
    }
  }
  assertInvalid(t, await admin.inject('PUT', `/mentors/${id}`, { name: '', expertise: 'x', imageUrl: null, clubId: 5 }),
    ['name', 'expertise', 'imageUrl', 'clubId'], 'every issue')
  assertInvalid(t, await admin.inject('PUT', `/mentors/${randomUUID()}`, { name: '' }), ['name'], 'for any id')
  assertInvalid(t, await admin.inject('PUT', '/mentors//', {}), ['id'], 'an empty id')
  t.strictSame(await stored(id), before, 'unchanged')
})

t.test('PUT /mentors/:id returns 500 for a null networkUrl', async t => {
  const id = await addMentor({ network_url: 'ada' })
  const response = await admin.inject('PUT', `/mentors/${id}`, { name: 'Bob', networkUrl: null })
  assertResponse(t, response, 500, { message: 'Error updating mentor' })
  t.match(await stored(id), { name: 'Ada', network_url: 'ada' }, 'unchanged')
})

t.test('PUT /mentors/:id returns 500 for an unknown mentor', async t => {
  const message = 'Error updating mentor'
  for (const id of unknownPaths(await addMentor())) {
    assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, {}), 500, { message }, shown(id))
    assertResponse(t, await admin.inject('PUT', `/mentors/${id}`, { name: 'Bob' }), 500, { message }, shown(id))
  }
})

t.test('PUT /mentors/:id returns 500 for an unknown club', async t => {
  const id = await addMentor()
  for (const clubId of [randomUUID(), 'not-a-uuid', LONG, (await addClub()).id.toUpperCase()]) {
    const response = await admin.inject('PUT', `/mentors/${id}`, { name: 'Bob', clubId })
    assertResponse(t, response, 500, { message: 'Error updating mentor' }, shown(clubId))
  }
  t.equal((await stored(id))?.name, 'Ada', 'unchanged')
})

t.test('DELETE /mentors/:id deletes the mentor and its likes, and no others', async t => {
  const [ada, bob, someone] = [await addMentor(), await addMentor(), await person(app)]
  await like(ada, someone, admin)
  await like(bob, someone)
  const response = await admin.inject('DELETE', `/mentors/${ada}`)
  assertResponse(t, response, 200, { message: 'Mentor deleted successfully' })
  t.equal(await stored(ada), undefined)
  t.strictSame(await likesOf(ada), [])
  t.ok(await stored(bob))
  t.strictSame(await likesOf(bob), [someone.id])
  const { likedMentors } = (await someone.inject('GET', '/mentors/liked')).json()
  t.strictSame(likedMentors.map((mentor: { id: string }) => mentor.id), [bob])
  assertResponse(t, await someone.inject('POST', `/mentors/${ada}/like`), 404, { message: 'Mentor not found' })
  assertResponse(t, await admin.inject('DELETE', `/mentors/${ada}`), 500, { message: 'Error deleting mentor' }, 'once')
})

t.test('DELETE /mentors/:id accepts an empty JSON body and a trailing slash', async t => {
  const headers = bearerOfJson(admin.token)
  const response = await inject(app, 'DELETE', `/mentors/${await addMentor()}/`, undefined, headers)
  assertResponse(t, response, 200, { message: 'Mentor deleted successfully' })
})

t.test('DELETE /mentors/:id returns 500 for an unknown id, and rejects an empty one', async t => {
  const id = await addMentor()
  for (const unknown of [...unknownPaths(id), 'liked']) {
    const response = await admin.inject('DELETE', `/mentors/${unknown}`)
    assertResponse(t, response, 500, { message: 'Error deleting mentor' }, shown(unknown))
  }
  assertInvalid(t, await admin.inject('DELETE', '/mentors//'), ['id'])
  t.ok(await stored(id))
})
