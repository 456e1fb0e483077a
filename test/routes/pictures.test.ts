import { randomUUID } from 'node:crypto'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { crc32 } from 'node:zlib'

import sharp from 'sharp'

import { createLogger } from '#lib/http/logger.js'
import { assertResponse } from '../assertions.ts'
import { clientIn } from '../clients.ts'
import { stopClock } from '../clock.ts'
import { bearer, build, inject, insert, make, person, type Person, untilBlocked } from '../helper.ts'
import t, { type Test } from '../suite.ts'

const app = await build(t, { PICTURES_PER_USER: '3', MAX_PICTURE_BYTES: '2000000' })
const { DATABASE_URL } = app.config
const production = await build(t, { DATABASE_URL, NODE_ENV: 'production' })
const GONE = { message: 'Picture not found' }
const DAMAGED = { message: 'The file is not a picture, or it is damaged' }
const OTHER_TYPE = { message: 'A picture must be a JPEG, PNG or WebP file' }
const ENCODED = { message: 'A request body cannot be encoded, please send it without Content-Encoding' }
const BUSY = { message: 'Too many pictures are being uploaded right now, please try again in a few seconds' }
const TOO_LARGE = {
  message: 'A picture may have at most 2 MB and 40 megapixels, or fewer if it takes much memory. Please save it ' +
    'smaller, or as a JPEG that is not progressive',
}

/** A picture whose left half is red and whose right half is blue. */
const halves = (width = 600, height = 400) => sharp({ create: { width, height, channels: 3, background: 'red' } })
  .composite([{
    input: { create: { width: Math.ceil(width / 2), height, channels: 3, background: 'blue' } }, gravity: 'east',
  }])

async function upload (token: string, payload: Buffer | string, type = 'image/jpeg', service = app) {
  const response = await service.inject({
    method: 'POST', url: '/me/pictures', headers: { ...bearer(token), 'content-type': type }, payload,
  })
  return response
}

/** Uploads a picture. Returns it as the response has it. */
async function stored (ada: Person, payload?: Buffer) {
  const response = await upload(ada.token, payload ?? await halves().jpeg().toBuffer())
  if (response.statusCode !== 201) throw new Error(response.body)
  return response.json().picture as { id: string, url: string, width: number, height: number, createdAt: string }
}

const pathOf = (url: string) => new URL(url).pathname
const load = (url: string, query = '') => inject(app, 'GET', pathOf(url) + query)

t.test('POST /me/pictures takes JPEG, PNG and WebP, whatever type was announced', async t => {
  const ada = await person(app)
  for (const format of ['jpeg', 'png', 'webp'] as const) {
    const response = await upload(ada.token, await halves().toFormat(format).toBuffer(), 'image/png')
    t.equal(response.statusCode, 201, format)
    const { picture: { id, url, createdAt, ...size }, ...rest } = response.json()
    t.strictSame([size, rest], [{ width: 600, height: 400 }, {}])
    t.equal(url, `http://localhost:80/pictures/${id}`)
    t.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const { statusCode, headers, rawPayload } = await load(url)
    t.equal(statusCode, 200)
    t.match(headers, {
      'content-type': 'image/webp',
      'cache-control': 'public, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'cross-origin',
      'content-security-policy': /default-src 'none'/,
    })
    t.match(await sharp(rawPayload).metadata(), { format: 'webp', width: 600, height: 400 })
  }
})

t.test('GET /pictures/:id allows any origin, and does not vary by it', async t => {
  const { url } = await stored(await person(app))
  for (const service of [app, production]) {
    for (const origin of [undefined, 'http://localhost:5173', 'https://elsewhere.example']) {
      for (const [path, status] of [[pathOf(url), 200], ['/pictures/unknown', 404]] as const) {
        const { statusCode, headers } = await service.inject({ url: path, headers: { ...origin && { origin } } })
        const cors = Object.entries(headers).filter(([name]) => /^access-control|^vary/.test(name))
        t.strictSame([statusCode, cors], [status, [['access-control-allow-origin', '*']]], `${path} for ${origin}`)
      }
    }
  }
})

t.test('A photo is turned upright, and loses its place, name and color profile', async t => {
  const photo = await halves().withIccProfile('p3')
    .withExif({ IFD0: { Artist: 'Ada Lovelace', Orientation: '6' }, IFD3: { GPSLatitude: '51/1 30/1 0/1' } })
    .withMetadata({ orientation: 6 }).jpeg().toBuffer()
  t.match(await sharp(photo).metadata(), { orientation: 6, exif: Buffer }, 'the photo has what is to be lost')
  const { url, width, height } = await stored(await person(app), photo)
  t.strictSame([width, height], [400, 600])
  const { rawPayload } = await load(url)
  const { exif, xmp, icc, orientation } = await sharp(rawPayload).metadata()
  t.strictSame([exif, xmp, icc, orientation], [undefined, undefined, undefined, undefined])
  const { data } = await sharp(rawPayload).raw().toBuffer({ resolveWithObject: true })
  t.ok(data[0]! > 200 && data[2]! < 60, 'red is at the top')
  t.ok(data.at(-1)! > 200 && data.at(-3)! < 60, 'blue is at the bottom')
})

t.test('A large picture is scaled to 2000 pixels, and to 480 for lists', async t => {
  const { url, width, height } = await stored(await person(app), await halves(5000, 2500).png().toBuffer())
  t.strictSame([width, height], [2000, 1000])
  for (const [query, expected] of [
    ['?width=480', 480], ['?width=1', 480], ['?width=481', 2000], ['?width=', 2000], ['?width=x', 2000],
  ] as const) {
    t.match(await sharp((await load(url, query)).rawPayload).metadata(), { width: expected }, query)
  }
})

t.test('POST /me/pictures refuses anything that is not a picture', async t => {
  const { token } = await person(app)
  const jpeg = await halves().jpeg().toBuffer()
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'
  for (const [name, payload] of Object.entries({
    text: 'not a picture',
    svg,
    html: '<html><script>alert(1)</script>',
    gif: await halves().gif().toBuffer(),
    tiff: await halves().tiff().toBuffer(),
    avif: await halves(60, 40).avif().toBuffer(),
    'polyglot svg': Buffer.concat([Buffer.from(svg), jpeg]),
  })) {
    assertResponse(t, await upload(token, payload), 415, OTHER_TYPE, name)
  }
  for (const [name, payload] of Object.entries({
    empty: '',
    half: jpeg.subarray(0, jpeg.length / 2),
    header: jpeg.subarray(0, 20),
  })) {
    assertResponse(t, await upload(token, payload), 400, DAMAGED, name)
  }
  for (const type of ['image/gif', 'image/svg+xml', 'application/json', 'text/plain', 'multipart/form-data']) {
    assertResponse(t, await upload(token, jpeg, type), 415, OTHER_TYPE, type)
  }
  const headers = { ...bearer(token), 'content-type': 'image/jpeg', 'content-encoding': 'br' }
  const encoded = await app.inject({ method: 'POST', url: '/me/pictures', headers, payload: jpeg })
  assertResponse(t, encoded, 415, ENCODED)
  assertResponse(t, await upload(token, Buffer.alloc(2_000_001)), 413, TOO_LARGE)
})

t.test('A picture with too many pixels, or that takes more memory than any process has, is a 413', async t => {
  const { token } = await person(app)
  // Their headers announce more pixels than they have, which would be a 400 if they were decoded.
  for (const [width, height] of [[6401, 6250], [4_000_000, 10], [10, 4_000_000]] as const) {
    const png = await halves().png().toBuffer()
    png.writeUInt32BE(width, 16)
    png.writeUInt32BE(height, 20)
    png.writeUInt32BE(crc32(png.subarray(12, 29)), 29)
    assertResponse(t, await upload(token, png), 413, TOO_LARGE, `a PNG of ${width} × ${height}`)
  }
})

t.test('A photo of 40 megapixels, and a panorama, are converted', async t => {
  const ada = await person(app)
  for (const [[width, height], expected] of [
    [[7300, 5475], [2000, 1500]], [[5475, 7300], [1500, 2000]], [[16_000, 2500], [2000, 313]],
  ] as const) {
    const pixels = sharp(Buffer.alloc(3 * width * height), { raw: { width, height, channels: 3 } })
    const photo = await pixels.jpeg({ optimizeCoding: false }).toBuffer()
    const picture = await stored(ada, photo)
    t.strictSame([picture.width, picture.height], expected)
  }
})

t.test('Bytes behind a picture are not stored', async t => {
  const jpeg = Buffer.concat([await halves().jpeg().toBuffer(), Buffer.from('<script>alert(1)</script>PK\x03\x04')])
  const { url } = await stored(await person(app), jpeg)
  t.notOk((await load(url)).rawPayload.includes('script'))
})

t.test('POST /me/pictures with a key stores an upload once, also at the quota', async t => {
  const service = await build(t, { PUBLIC_URL: 'https://api.example.org', PICTURES_PER_USER: '1' })
  const ada = await person(service)
  const jpeg = await halves().jpeg().toBuffer()
  const send = (payload: Buffer) => service.inject({
    method: 'POST',
    url: '/me/pictures',
    headers: { ...bearer(ada.token), 'content-type': 'image/jpeg', 'idempotency-key': 'upload' },
    payload,
  })
  const [first, second] = await Promise.all([send(jpeg), send(jpeg)])
  t.strictSame([first.statusCode, second.json(), (await send(jpeg)).json()], [201, first.json(), first.json()])
  assertResponse(t, await send(await halves(60).jpeg().toBuffer()), 422, {
    message: 'This Idempotency-Key belongs to a different request',
  })
  await ada.inject('DELETE', `/me/pictures/${first.json().picture.id}`)
  assertResponse(t, await send(jpeg), 410, {
    message: 'This request was completed, and what it created has been deleted since',
  })
})

t.test('An account has a quota of pictures and of bytes', async t => {
  const ada = await person(app)
  await Promise.all([1, 2, 3].map(() => stored(ada)))
  for (const payload of [await halves().jpeg().toBuffer(), 'refused before it is converted']) {
    assertResponse(t, await upload(ada.token, payload), 409, {
      message: 'You may have at most 3 pictures and 100 MB of them. Please delete some first',
    })
  }
  const bob = await person(app)
  const responses = await Promise.all(Array.from({ length: 6 }, async () =>
    upload(bob.token, await halves().jpeg().toBuffer())))
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [201, 201, 201, 409, 409, 409])
  const small = await build(t, { DATABASE_URL, PICTURE_MB_PER_USER: '0' })
  const { token } = await person(small)
  assertResponse(t, await upload(token, await halves().jpeg().toBuffer(), 'image/jpeg', small), 409, {
    message: 'You may have at most 100 pictures and 0 MB of them. Please delete some first',
  })
})

t.test('Uploads of a deleted account are a 401', async t => {
  const ada = await person(app)
  await app.sql`DELETE FROM users WHERE id = ${ada.id}`
  assertResponse(t, await upload(ada.token, await halves().jpeg().toBuffer()), 401, { message: 'Unauthorized' })
})

t.test('GET /me/pictures lists the newest picture first, with its uses, and DELETE needs force for it', async t => {
  const [ada, bob] = [await person(app), await person(app)]
  const [first, second] = [await stored(ada), await stored(ada)]
  await stored(bob)
  const club = await insert(app, 'clubs', { name: 'Chess', image_url: first.url })
  const fields = { image_url: first.url, club_id: club }
  const event = await insert(app, 'events', { ...fields, title: 'Chess Night' })
  const mentor = await insert(app, 'mentors', { ...fields, name: 'Grace' })
  const testimonial = await insert(app, 'testimonials', { image_url: first.url, name: 'Grace' })
  await insert(app, 'blogs', { author_id: bob.id, title: 'A draft', image_url: first.url })
  const draft = await insert(app, 'blogs', { author_id: ada.id, title: 'x'.repeat(300), image_url: first.url })
  const blog = await insert(app, 'blogs', {
    author_id: bob.id,
    status: 'PUBLISHED',
    title: 'My post',
    content: `![](${first.url}) and again ![](${first.url}?width=480)`,
  })
  t.equal((await ada.inject('PUT', '/me/profile', { avatar: first.id })).json().user.avatar, first.url)
  const uses = [
    { kind: 'avatar', id: ada.id, name: 'Ada Lovelace' },
    ...[
      { kind: 'blog', id: draft, name: 'x'.repeat(200) },
      { kind: 'blog', id: blog, name: 'My post' },
    ].sort((one, other) => one.id < other.id ? -1 : 1),
    { kind: 'club', id: club, name: 'Chess' },
    { kind: 'event', id: event, name: 'Chess Night' },
    { kind: 'mentor', id: mentor, name: 'Grace' },
    { kind: 'testimonial', id: testimonial, name: 'Grace' },
  ]
  assertResponse(t, await ada.inject('GET', '/me/pictures'), 200, {
    pictures: [{ ...second, uses: [] }, { ...first, uses }],
  })

  const remove = (query: string) => ada.inject('DELETE', `/me/pictures/${first.id}${query}`)
  for (const query of ['', '?force=', '?force=false', '?force=true&force=true']) {
    assertResponse(t, await remove(query), 409, { message: 'This picture is in use', uses }, query)
  }
  t.equal((await load(first.url)).statusCode, 200)
  assertResponse(t, await remove('?force=true'), 200, { message: 'Picture deleted successfully' })
  assertResponse(t, await load(first.url), 404, GONE)
  t.equal((await ada.inject('GET', '/auth/me')).json().user.avatar, null)
  t.equal((await ada.inject('GET', `/blogs/${draft}`)).json().blog.imageUrl, null)
  t.match((await inject(app, 'GET', '/events')).json().events, [{ id: event, imageUrl: first.url }])
  t.match((await inject(app, 'GET', `/blogs/${blog}`)).json().blog.content, /pictures/, 'a text stays as it was sent')
})

t.test('A picture that somebody begins to use while it is deleted stays', async t => {
  const ada = await person(app)
  const picture = await stored(ada)
  let deleting!: ReturnType<typeof ada.inject>
  await app.sql.begin(async sql => {
    await sql`SELECT FROM pictures WHERE id = ${picture.id} FOR KEY SHARE`
    await sql`UPDATE users SET avatar = ${picture.url} WHERE id = ${ada.id}`
    deleting = ada.inject('DELETE', `/me/pictures/${picture.id}`)
    await untilBlocked(app.sql)
  })
  const uses = [{ kind: 'avatar', id: ada.id, name: 'Ada Lovelace' }]
  assertResponse(t, await deleting, 409, { message: 'This picture is in use', uses })
})

t.test('An avatar that version 1.0.0 sets is shown and kept, and an avatar that it removes is gone', async t => {
  const ada = await person(app)
  const [first, second] = [await stored(ada), await stored(ada)]
  const avatar = async () => (await ada.inject('GET', '/auth/me')).json().user.avatar
  await ada.inject('PUT', '/me/profile', { avatar: first.id })
  const url = `https://example.org/pictures/${second.id.toUpperCase()}`
  await app.sql`UPDATE users SET avatar = ${url} WHERE id = ${ada.id}`
  t.equal(await avatar(), second.url)
  await app.sql`UPDATE pictures SET unused_since = now() - interval '25 hours' WHERE user_id = ${ada.id}`
  await stored(ada)
  t.strictSame([(await load(first.url)).statusCode, (await load(second.url)).statusCode], [404, 200])
  await app.sql`UPDATE users SET avatar = NULL WHERE id = ${ada.id}`
  t.equal(await avatar(), null)
  // What this version sets is a use in the eyes of 1.0.0.
  await ada.inject('PUT', '/me/profile', { avatar: second.id })
  const { count } = await app.sql`SELECT FROM users WHERE picture_ids(avatar) @> ARRAY[${second.id}::uuid]`
  t.equal(count, 1)
})

t.test('Uses are few and short, and a text refers to its first 100 pictures', async t => {
  const ada = await person(app)
  const [picture, other] = [await stored(ada), await stored(ada)]
  const links = Array.from({ length: 100 }, () => `/pictures/${randomUUID()}`).join(' ')
  for (const content of [...Array(25).fill(picture.url), `${picture.url} ${links} ${other.url}`]) {
    await ada.inject('POST', '/blogs/submit', { title: 'A very '.repeat(100), content })
  }
  const { pictures } = (await ada.inject('GET', '/me/pictures')).json()
  t.strictSame(pictures.map(({ uses }: { uses: unknown[] }) => uses.length), [0, 20])
  t.equal(pictures[1].uses[0].name.length, 200)
})

t.test('DELETE /me/pictures/:id deletes an own picture, and for admins any', async t => {
  const [ada, bob, admin] = [await person(app), await person(app), await person(app, 'ADMIN')]
  const [first, second] = [await stored(ada), await stored(ada)]
  assertResponse(t, await bob.inject('DELETE', `/me/pictures/${first.id}`), 404, GONE)
  for (const [who, { id, url }] of [[ada, first], [admin, second]] as const) {
    const deleted = { message: 'Picture deleted successfully' }
    assertResponse(t, await who.inject('DELETE', `/me/pictures/${id}`), 200, deleted)
    assertResponse(t, await who.inject('DELETE', `/me/pictures/${id}`), 404, GONE)
    assertResponse(t, await load(url), 404, GONE)
  }
  for (const id of ['unknown', '%00', '%FF']) assertResponse(t, await inject(app, 'GET', `/pictures/${id}`), 404, GONE)
})

t.test('An upload deletes pictures that nothing has used for a day', async t => {
  const ada = await person(app)
  const [used, unused] = [await stored(ada), await stored(ada)]
  const club = await insert(app, 'clubs', { image_url: used.url })
  const age = () => app.sql`
    UPDATE pictures SET unused_since = unused_since - interval '25 hours' WHERE user_id = ${ada.id}
  `
  await age()
  await stored(ada)
  t.equal((await load(used.url)).statusCode, 200)
  t.equal((await load(unused.url)).statusCode, 404)
  await app.sql`UPDATE clubs SET image_url = NULL WHERE id = ${club}`
  await stored(ada)
  t.equal((await load(used.url)).statusCode, 200, 'it is kept for a day after its last use')
  await age()
  await stored(ada)
  t.equal((await load(used.url)).statusCode, 404)
})

t.test('URLs begin with PUBLIC_URL, or in development with the host of the request', async t => {
  const jpeg = await halves().jpeg().toBuffer()
  const named = await build(t, { DATABASE_URL, PUBLIC_URL: 'https://api.example.org/v1/' })
  const ada = await person(named)
  const { id, url } = (await upload(ada.token, jpeg, 'image/jpeg', named)).json().picture
  t.equal(url, `https://api.example.org/v1/pictures/${id}`)
  t.equal((await ada.inject('GET', '/me/pictures')).json().pictures[0].url, url)

  const bob = await person(production)
  const refusal = { message: 'PUBLIC_URL is not configured' }
  assertResponse(t, await upload(bob.token, jpeg, 'image/jpeg', production), 501, refusal)
  const large = Buffer.alloc(production.config.MAX_PICTURE_BYTES + 1)
  assertResponse(t, await upload(bob.token, large, 'image/jpeg', production), 501, refusal, 'before the body')
  assertResponse(t, await bob.inject('GET', '/me/pictures'), 501, refusal)
})

t.test('Twenty photos that are uploaded at once are stored', async t => {
  const { pictures } = app.queues
  let finish = () => {}
  const conversion = pictures.run(clientIn('192.0.2.1'), () => new Promise<void>(resolve => { finish = resolve }))
  const pass = stopClock(t)
  const photo = await halves().jpeg().toBuffer()
  const people = await Promise.all(Array.from({ length: 20 }, () => person(app)))
  const uploads = people.map(({ token }) => upload(token, photo))
  while (pictures.waiting < 20) await sleep(5)
  // Converting large photos takes this time.
  pass(30_000)
  finish()
  t.strictSame((await Promise.all(uploads)).map(({ statusCode }) => statusCode), Array(20).fill(201))
  await conversion
})

t.test('An upload is a 503 while the queue of uploads is full', async t => {
  const full = await build(t, { DATABASE_URL, MAX_REQUESTS: '1' })
  let release = () => {}
  const released = new Promise<void>(resolve => { release = resolve })
  const others = ['192.0.2.1', '192.0.2.2'].map(network =>
    full.queues.pictures.run(clientIn(network), () => released))
  const { token } = await person(full)
  const refused = await upload(token, await halves().jpeg().toBuffer(), 'image/jpeg', full)
  assertResponse(t, refused, 503, BUSY)
  t.equal(refused.headers['retry-after'], '5')
  release()
  await Promise.all(others)
})

t.test('Uploads are a 503 while bodies announce too much, before their bytes are read', async t => {
  const full = await build(t, { DATABASE_URL, MAX_HELD_BYTES: '2000000' })
  const { token } = await person(full)
  const refused = await upload(token, Buffer.alloc(1_600_000), 'image/jpeg', full)
  assertResponse(t, refused, 503, { message: 'The service is overloaded, please try again in a few seconds' })
  t.equal(refused.headers['retry-after'], '2')
  const payload = Buffer.concat([await halves().jpeg().toBuffer(), Buffer.alloc(1_000_000)])
  t.equal((await upload(token, payload, 'image/jpeg', full)).statusCode, 201)
})

/** The head of an upload. */
const head = (token: string, picture: Buffer, more = '') =>
  'POST /me/pictures HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n' +
    `Authorization: Bearer ${token}\r\nContent-Length: ${picture.length}\r\n${more}\r\n`

/** Sends uploads to a service that listens, each on a connection of its own. Resolves to their sockets. */
async function send (service: typeof app, token: string, pictures: Buffer[]) {
  const { port } = service.server.address() as { port: number }
  return Promise.all(pictures.map(async picture => {
    const socket = connect(port, '127.0.0.1')
    socket.write(head(token, picture, 'Connection: close\r\n'))
    await new Promise(resolve => socket.write(picture, resolve))
    return socket.setEncoding('utf8')
  }))
}

/** A service that listens, whose conversion of a picture runs until `release`. */
async function whileConverting (t: Test) {
  const service = await build(t)
  await service.listen()
  const { token } = await person(service)
  const { pictures } = service.queues
  let release = () => {}
  const conversion = pictures.run(clientIn('192.0.2.1'), () => new Promise<void>(resolve => { release = resolve }))
  return { service, token, pictures, conversion, release: () => release() }
}

t.test('An upload that waits is dropped when its client has gone', async t => {
  const { service, token, pictures, conversion, release } = await whileConverting(t)
  const jpeg = await halves().jpeg().toBuffer()
  const sockets = await send(service, token, [jpeg, jpeg])
  const { port } = service.server.address() as { port: number }
  const pipelined = connect(port, '127.0.0.1')
  const request = Buffer.concat([Buffer.from(head(token, jpeg)), jpeg])
  pipelined.write(Buffer.concat([request, request, request]))
  while (pictures.waiting < 5) await sleep(5)
  for (const socket of [...sockets, pipelined]) socket.destroy()
  while (pictures.waiting > 0) await sleep(5)
  release()
  await conversion
  t.equal((await service.sql`SELECT FROM pictures`).count, 0)
})

t.test('An upload whose client has gone before its turn is not converted', async t => {
  const { app: service } = await make(t)
  const answered = new Promise(resolve => {
    service.addHook('onSend', async (_request, { statusCode }) => resolve(statusCode))
  })
  await service.listen()
  const { token } = await person(service)
  await service.sql.begin(async sql => {
    await sql`LOCK TABLE pictures`
    const [socket] = await send(service, token, [await halves().jpeg().toBuffer()])
    await untilBlocked(service.database.shortSql)
    const connections = promisify(service.server.getConnections.bind(service.server))
    socket!.destroy()
    while (await connections() > 0) await sleep(5)
  })
  t.equal(await answered, 503)
})

t.test('Uploads at once that are beyond the quota are not converted', async t => {
  const { token } = await person(app)
  const picture = await halves().jpeg().toBuffer()
  // Converting the damaged ones would be a 400.
  const payloads = [...Array(3).fill(picture), ...Array(3).fill(picture.subarray(0, 500))]
  const responses = await Promise.all(payloads.map(payload => upload(token, payload)))
  t.strictSame(responses.map(({ statusCode }) => statusCode), [201, 201, 201, 409, 409, 409])
})

t.test('A stop does not wait for uploads that wait', async t => {
  const { service, token, pictures, conversion, release } = await whileConverting(t)
  const sockets = await send(service, token, Array(6).fill(await halves().jpeg().toBuffer()))
  while (pictures.waiting < 6) await sleep(5)
  const closed = service.close()
  const answers = await Promise.all(sockets.map(async socket => (await socket.toArray()).join('')))
  t.strictSame(answers.map(answer => answer.slice(9, 12)), Array(6).fill('503'))
  release()
  await Promise.all([conversion, closed])
})

t.test('On a processor without x86-64-v2, everything works but uploads', async t => {
  const { readFile } = fs
  // Of a virtual machine of the type kvm64
  const original = t.intercept(fs, 'readFile', {
    value: async (...args: Parameters<typeof readFile>) =>
      args[0] === '/proc/cpuinfo' ? 'flags\t: sse2 pni\n' : readFile(...args),
  })
  syncBuiltinESMExports()
  const lines: string[] = []
  const old = await build(t, { DATABASE_URL }, createLogger('warn', { write (line: string) { lines.push(line) } }))
  original.restore()
  syncBuiltinESMExports()

  const ada = await person(old)
  const jpeg = await halves().jpeg().toBuffer()
  const refusal = { message: 'This server cannot convert pictures' }
  assertResponse(t, await upload(ada.token, jpeg, 'image/jpeg', old), 501, refusal)
  t.equal((await ada.inject('GET', '/me/pictures')).statusCode, 200)
  const warning = 'Uploads of pictures get a 501, because the processor lacks ssse3, sse4_1, sse4_2, popcnt.'
  t.equal(lines.filter(line => line.includes(warning)).length, 1, lines.join(''))
})
