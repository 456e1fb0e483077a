import t from 'tap'

import { assertResponse, shown, unknownPaths } from '../../assertions.ts'
import { bearerOfJson, inject, person } from '../../helper.ts'
import { addMentor, admin, app, like, likesOf } from './fixtures.ts'

const people = (count: number) => Promise.all(Array.from({ length: count }, () => person(app)))

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

t.test('POST /mentors/:mentorId/like likes, unlikes, and likes again', async t => {
  const id = await addMentor()
  const liked = (likeCount: number) => ({ message: 'Mentor liked successfully', liked: true, likeCount })
  const unliked = (likeCount: number) => ({ message: 'Mentor unliked successfully', liked: false, likeCount })
  for (const role of ['STUDENT', 'CLUB_HEAD', 'ADMIN'] as const) {
    const [someone, other] = [await person(app, role), await person(app)]
    const toggle = () => someone.inject('POST', `/mentors/${id}/like`)
    assertResponse(t, await toggle(), 200, liked(1), role)
    t.strictSame(await likesOf(id), [someone.id])
    assertResponse(t, await toggle(), 200, unliked(0), role)
    t.strictSame(await likesOf(id), [])
    assertResponse(t, await toggle(), 200, liked(1), role)
    assertResponse(t, await other.inject('POST', `/mentors/${id}/like`), 200, liked(2), role)
    assertResponse(t, await toggle(), 200, unliked(1), role)
    t.strictSame(await likesOf(id), [other.id], 'only one\'s own like is taken back')
    assertResponse(t, await other.inject('POST', `/mentors/${id}/like/`), 200, unliked(0), 'with a trailing slash')
  }
})

t.test('POST /mentors/:mentorId/like counts the likes of this mentor only', async t => {
  const [ada, bob, someone] = [await addMentor(), await addMentor(), await person(app)]
  await like(bob, someone, ...await people(3))
  t.equal((await someone.inject('POST', `/mentors/${ada}/like`)).json().likeCount, 1)
  t.equal((await likesOf(bob)).length, 4)
})

t.test('POST /mentors/:mentorId/like accepts an empty JSON body', async t => {
  const [id, { token }] = [await addMentor(), await person(app)]
  const headers = bearerOfJson(token)
  t.equal((await inject(app, 'POST', `/mentors/${id}/like`, undefined, headers)).json().liked, true)
})

t.test('POST /mentors/:mentorId/like returns 404 for an unknown mentor', async t => {
  const someone = await person(app)
  for (const id of [...unknownPaths(await addMentor()), '']) {
    const response = await someone.inject('POST', `/mentors/${id}/like`)
    assertResponse(t, response, 404, { message: 'Mentor not found' }, shown(id))
  }
})

t.test('POST /mentors/:mentorId/like returns 500 for a deleted user', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  await app.sql`DELETE FROM users WHERE id = ${someone.id}`
  const response = await someone.inject('POST', `/mentors/${id}/like`)
  assertResponse(t, response, 500, { message: 'Error toggling mentor like' })
  t.strictSame(await likesOf(id), [])
})

t.test('POST /mentors/:mentorId/like returns 401 for a token without a user id', async t => {
  const headers = { authorization: `Bearer ${app.jwt.sign({ role: 'STUDENT' } as never)}` }
  for (const [method, url] of [
    ['POST', `/mentors/${await addMentor()}/like`],
    ['POST', '/mentors/unknown/like'],
    ['GET', '/mentors/liked'],
  ] as const) {
    const response = await inject(app, method, url, undefined, headers)
    assertResponse(t, response, 401, { message: 'Authentication required' }, url)
  }
})

t.test('50 concurrent toggles of one user neither fail nor miscount', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  const responses = await Promise.all(numbers(1, 50).map(() => someone.inject('POST', `/mentors/${id}/like`)))
  t.strictSame(responses.map(({ statusCode }) => statusCode), Array(50).fill(200))
  const outcomes = responses.map(response => response.json())
  t.equal(outcomes.filter(({ liked }) => liked).length, 25, 'likes and unlikes alternate')
  t.ok(outcomes.every(({ likeCount }) => likeCount === 0 || likeCount === 1), 'only this user is counted')
  t.strictSame(await likesOf(id), [])
})

t.test('50 concurrent likes of different users neither fail nor miscount', async t => {
  const [id, fans] = [await addMentor(), await people(50)]
  const toggle = async (liked: boolean) => {
    const responses = await Promise.all(fans.map(fan => fan.inject('POST', `/mentors/${id}/like`)))
    t.ok(responses.every(response => response.statusCode === 200 && response.json().liked === liked))
    return responses.map(response => response.json().likeCount as number).sort((a, b) => a - b)
  }
  // Each count is read after its own write, so the nth like counts at least n.
  t.ok((await toggle(true)).every((count, i) => count > i && count <= 50))
  t.strictSame(await likesOf(id), fans.map(fan => fan.id).sort())
  t.ok((await toggle(false)).every((count, i) => count >= 0 && count <= i))
  t.strictSame(await likesOf(id), [])
})

t.test('Toggles concurrent with the deletion of the mentor succeed before it, or are a 404', async t => {
  const allowed = ['200 Mentor liked successfully', '200 Mentor unliked successfully', '404 Mentor not found']
  for (let round = 0; round < 5; round++) {
    const [id, fans] = [await addMentor(), await people(20)]
    await like(id, ...fans.slice(5, 15))
    const toggle = (fan: typeof admin) => fan.inject('POST', `/mentors/${id}/like`)
    const [before, deletion, after] = await Promise.all([
      Promise.all(fans.slice(0, 10).map(toggle)),
      admin.inject('DELETE', `/mentors/${id}`),
      Promise.all(fans.slice(10).map(toggle)),
    ])
    assertResponse(t, deletion, 200, { message: 'Mentor deleted successfully' })
    const texts = [...before, ...after].map(response => `${response.statusCode} ${response.json().message}`)
    t.strictSame(texts.filter(text => !allowed.includes(text)), [])
    t.strictSame(await likesOf(id), [])
  }
})

t.test('A like during the deletion of the mentor is a 404', async t => {
  const [id, someone] = [await addMentor(), await person(app)]
  const { like } = await app.sql.begin(async sql => {
    await sql`DELETE FROM mentors WHERE id = ${id}`
    const like = someone.inject('POST', `/mentors/${id}/like`)
    const waiting = () => app.sql`
      SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
    `
    for (let tries = 0; tries < 1000 && (await waiting()).length === 0; tries++);
    return { like }
  })
  assertResponse(t, await like, 404, { message: 'Mentor not found' })
})
