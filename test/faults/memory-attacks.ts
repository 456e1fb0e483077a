// Clients, mostly of one network, that make the service hold as much as they can. As a worker thread this file runs
// some of the attacks, so that they do not delay the client that measures what others notice.
import { Socket } from 'node:net'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

import sharp from 'sharp'

import type { Person } from './fixture.ts'

const ATTACKER = '127.0.0.7'

/** The address of an attacker that has a network of its own. */
const otherNetwork = (n: number) => `127.1.${n >> 8}.${n & 255}`

/** How soon attackers come back after all of their connections were closed, in milliseconds. */
const RETURN = 500

/** The target of the attacks. */
export interface Target {
  port: number
  admin: Person
  author: Author
}

/** An author, the id of one of their drafts, the id of a long event, and tokens of others with 49 MB of drafts each. */
export interface Author extends Person {
  event: string
  others: string[]
}

/** An attack. It begins to send, and returns the sockets on which it continues. */
type Attack = (target: Target) => Socket[]

const HEAD = (path: string, token?: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n${token ? `Authorization: Bearer ${token}\r\n` : ''}\r\n`

let limit = 0
const otherList = () => HEAD(`/events?limit=${10_000 + ++limit}`)

const watch = (lists: string[]) => `/live?${new URLSearchParams(lists.map((list): [string, string] => ['list', list]))}`

/** Long lists for 13 streams, because a stream watches at most 8. */
const LONG_LISTS = Array.from({ length: 100 }, (_, n) => `/events?limit=${10_000 + n}`)

/** Pictures whose conversion takes as much memory as it may with 512 MB or, the last two, with 256 MB. */
const makePictures = () => Promise.all([
  photo(6000).jpeg({ quality: 60, chromaSubsampling: '4:4:4' }).toBuffer(),
  photo(4000).jpeg({ quality: 60, chromaSubsampling: '4:4:4', progressive: true }).toBuffer(),
  sharp({ create: { width: 4000, height: 4000, channels: 4, background: '#0008' } })
    .toColourspace('rgb16').png({ progressive: true }).toBuffer(),
  sharp({ create: { width: 6000, height: 6000, channels: 3, background: '#888' } }).webp().toBuffer(),
  sharp({ create: { width: 16_000, height: 2500, channels: 4, background: '#0008' } })
    .toColourspace('rgb16').png().toBuffer(),
  photo(3000).jpeg({ quality: 60, progressive: true }).toBuffer(),
  sharp({ create: { width: 3840, height: 2160, channels: 4, background: '#0008' } }).png().toBuffer(),
])

/** Noise, a few MB as a JPEG. */
export function photo (side: number) {
  const noise = { type: 'gaussian', mean: 128, sigma: 30 } as const
  const create = { width: side / 4, height: side / 4, channels: 3, background: 'black', noise } as const
  return sharp({ create }).resize(side)
}

/** Headers in 15 KB, which is below the limit of Node: more than are allowed, and as many as are. */
const [HEADERS, ALLOWED] = [480, 95].map(count => Array.from({ length: count }, (_, n) =>
  `X-Attack-${n}: ${'x'.repeat(15_000 / count - 16)}\r\n`).join(''))

let pictures: Buffer[] = []

export const UNREAD_STREAMS = 'streams of changes, unread'
export const UPLOADS = 'sixteen pictures at once'
const EXPORTS = '400 exports at once'
export const EXPORTS_OF_NETWORKS = '400 exports of as many networks'
export const BODIES_OF_NETWORKS = 'bodies of 300 networks that lack their last byte'
export const FILES = 'pipelined files of /docs, of clients that leave'
export const PIPELINED = 'pipelined streams of clients that leave'
export const BODIES = 'bodies that lack their last byte'
export const FEWER_BODIES = 'bodies of 150 clients that lack their last byte'
export const HOST = 'a pattern as host'
export const ABANDONED = 'uploads of clients that leave'
const PARTS = 'pictures of millions of empty parts'
export const FOREIGN_TOKENS = 'tokens of 15 KB that are not ours'
const BESIDE_STREAMS = '13 streams of 100 long lists beside two lists that nobody reads, and uploads'

/** The last byte of a JSON object. */
const CLOSING = '}'.charCodeAt(0)

/** A body of 14,500 bytes in chunks of one byte, which does not end. */
const CHUNKS = '1\r\nx\r\n'.repeat(14_500)

/** The largest upload. */
const UPLOAD = Buffer.alloc(10_000_000)

/** A JPEG with empty segments, and a PNG with empty texts, as large as the largest upload. */
const FLOODS = ([['ffd8', 'ffe10002'], ['89504e470d0a1a0a', '000000007445587400000000']] as const)
  .map(([start, part]) => Buffer.concat([Buffer.from(start, 'hex'), Buffer.alloc(9_999_900, part, 'hex')]))

/** The attacks by their names. */
export const ATTACKS: Record<string, Attack> = {
  'pipelined reads of a draft of 1 MB, unread': ({ port, author }) => open(port, 8, socket => {
    socket.pause().write(HEAD(`/blogs/${author.id}`, author.token).repeat(100))
  }),
  [HOST]: ({ port }) => open(port, 18, socket => {
    const head = `GET /openapi.json HTTP/1.1\r\nHost: a\r\nX-Forwarded-Host: ${"$'".repeat(7500)}\r\n\r\n`
    socket.on('data', () => { if (Math.random() < 0.1) socket.write(head) })
    socket.write(head)
  }),
  [FOREIGN_TOKENS]: ({ port }) => open(port, 50, socket => {
    const next = () => {
      const payload = Buffer.from(JSON.stringify({ x: Math.random(), y: 'x'.repeat(10_000) })).toString('base64url')
      socket.write(HEAD('/auth/me', `eyJhbGciOiJIUzI1NiJ9.${payload}.${'A'.repeat(43)}`))
    }
    socket.on('data', next)
    next()
  }),
  'ever other lists, compressed': ({ port }) => open(port, 4, socket => {
    socket.write(otherList())
    socket.on('data', () => { if (Math.random() < 0.1) socket.write(otherList()) })
  }),
  [BODIES]: target => sendBodies(target, 470),
  [FEWER_BODIES]: target => sendBodies(target, 150),
  'everything of an author of 300 MB': ({ port, author }) => open(port, 4, socket => {
    for (const path of ['/me/export', '/blogs/me']) socket.write(HEAD(path, author.token))
    socket.resume()
  }),
  'drafts of six members': ({ port, author }) => open(port, 6, (socket, n) => {
    const head = HEAD('/blogs/me', author.others[n])
    // The next request waits for a list or an error.
    socket.on('data', data => { if (data.at(-1) === CLOSING) socket.write(head) }).write(head)
  }, otherNetwork),
  'all users, with long names': ({ port, admin }) => open(port, 4, socket => {
    socket.write(HEAD('/exports/users.csv', admin.token).repeat(3))
    socket.resume()
  }),
  '900 lists in one packet, unread': ({ port }) => open(port, 8, socket => {
    socket.pause().write(Array.from({ length: 900 }, otherList).join(''))
  }),
  [EXPORTS_OF_NETWORKS]: ({ port, author }) => open(port, 400, socket => {
    socket.resume().write(HEAD('/me/export', author.token))
  }, otherNetwork),
  [BODIES_OF_NETWORKS]: target => sendBodies(target, 300, 900_000, otherNetwork),
  'pictures on hosts with long international names': ({ port, author }) => open(port, 8, socket => {
    const body = `{"title":"Ten games","content":"I lost nine of them.","imageUrl":"http://${'你'.repeat(5000)}"}`
    const next = () => socket.write(
      'POST /blogs/submit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
      `Authorization: Bearer ${author.token}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    socket.on('data', next)
    next()
  }),
  'one connection that pipelines lists': ({ port }) => open(port, 1, socket => {
    const timer = setInterval(() => socket.write(otherList().repeat(5)), 20)
    socket.on('close', () => clearInterval(timer)).resume()
  }),
  'readers of nothing': target => readNothing(target, 60),
  [UNREAD_STREAMS]: ({ port }) => open(port, 400, socket => {
    socket.pause().write(HEAD(watch(['/events', '/mentors', '/clubs', '/blogs', '/testimonials', '/agenda'])))
  }),
  '2,000 streams of 8 long URLs, with bodies that do not end': ({ port }) => open(port, 2000, (socket, n) => {
    // In memory, each character takes two bytes.
    const lists = Array.from({ length: 8 }, (_, list) => `/agenda?club=${n}.${list}.你${'x'.repeat(1780)}`)
    const head = HEAD(watch(lists)).replace('\r\n\r\n', '\r\nTransfer-Encoding: chunked\r\n\r\n')
    socket.resume().write(`${head}3e00\r\n${'x'.repeat(0x3e00)}\r\n`)
  }),
  'streams of 100 long lists': ({ port }) => open(port, 100, (socket, n) => {
    socket.resume().write(HEAD(watch([`/events?limit=${10_000 + n}`])))
  }),
  [BESIDE_STREAMS]: target => [
    ...open(target.port, 13, (socket, n) => {
      socket.resume().write(HEAD(watch(LONG_LISTS.filter((_, list) => list % 13 === n))))
    }),
    ...readNothing(target, 2),
    ...ATTACKS[UPLOADS]!(target),
  ],
  [UPLOADS]: ({ port, author }) => open(port, 16, socket => {
    let count = 0
    const next = () => upload(socket, author, pictures[count++ % pictures.length]!)
    socket.on('data', next)
    next()
  }),
  [PARTS]: ({ port, author }) => open(port, 8, (socket, n) => {
    const next = () => upload(socket, author, FLOODS[n % 2]!)
    socket.on('data', next)
    next()
  }),
  [ABANDONED]: ({ port, author }) => open(port, 8, socket => {
    upload(socket, author, UPLOAD, () => setTimeout(() => socket.destroy(), 50))
  }),
  'headers of 15 KB on each of 3,700 connections': ({ port }) => open(port, 3700, socket => {
    const headers = Math.random() < 0.5 ? HEADERS : ALLOWED
    socket.write(`POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n${headers}\r\n`)
  }),
  'headers that never end on 6,000 connections': ({ port }) => open(port, 6000, socket => {
    socket.write(`GET /livez HTTP/1.1\r\nHost: a\r\n${HEADERS}`)
  }),
  'sign-ins in chunks of one byte': ({ port }) => open(port, 400, socket => {
    socket.write('POST /auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
      `Transfer-Encoding: chunked\r\n\r\n${CHUNKS}`)
  }),
  'lists with bodies in chunks of one byte': ({ port }) => open(port, 400, socket => {
    socket.write(otherList().replace('\r\n\r\n', `\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`))
  }),
  'too many headers, with bodies in chunks of one byte': ({ port }) => open(port, 50, socket => {
    socket.write(`POST /auth/login HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n${'X: y\r\n'.repeat(120)}\r\n`)
    for (let n = 0; n < 110; n++) socket.write(CHUNKS)
  }),
  'an upload in chunks of one byte': ({ port, author }) => open(port, 1, socket => {
    socket.write('POST /me/pictures HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n' +
      `Authorization: Bearer ${author.token}\r\nTransfer-Encoding: chunked\r\n\r\n`)
    for (let n = 0; n < 110; n++) socket.write(CHUNKS)
  }),
  'bodies of many small values': ({ port, author }) => open(port, 200, socket => {
    const body = `{"a":[${'{},'.repeat(340_000)}0]}`
    socket.write('POST /blogs/submit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
      `Authorization: Bearer ${author.token}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  }),
  [EXPORTS]: ({ port, author }) => open(port, 400, socket => {
    socket.resume().write(HEAD('/me/export', author.token))
  }),
  [PIPELINED]: ({ port }) => open(port, 134, socket => {
    socket.write(HEAD(watch(['/events?limit=12', '/mentors'])).repeat(16))
    setTimeout(() => socket.destroy(), 300)
  }),
  [FILES]: ({ port }) => open(port, 134, socket => {
    socket.pause().write(HEAD('/docs/static/swagger-ui-bundle.js').repeat(16))
    setTimeout(() => socket.destroy(), 300)
  }),
  'copies of a long event beside uploads': ({ port, admin, author }) => [
    ...open(port, 20, socket => {
      // As many as a request may create.
      const dates = Array.from({ length: 4 }, (_, n) => new Date(Date.now() + (n + 1) * 86_400_000).toISOString())
      const body = JSON.stringify({ dates })
      socket.resume().write((`POST /agenda/${author.event}/copies HTTP/1.1\r\nHost: a\r\n` +
        `Content-Type: application/json\r\nAuthorization: Bearer ${admin.token}\r\n` +
        `Content-Length: ${body.length}\r\n\r\n${body}`).repeat(3))
    }),
    ...open(port, 12, socket => upload(socket, author, UPLOAD)),
  ],
  'announced uploads, refused': ({ port }) => open(port, 26, socket => {
    socket.write('POST /me/pictures HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n' +
      'Content-Length: 4900000\r\n\r\n')
  }),
  'calendars of long texts': ({ port }) => open(port, 8, socket => {
    socket.on('data', data => { if (data.includes('END:VCALENDAR')) socket.write(HEAD('/feeds/events.ics')) })
    socket.write(HEAD('/feeds/events.ics') + HEAD('/feeds/blogs.atom'))
  }),
}

/** Sends posts without their last bytes. */
const sendBodies = (
  { port, author }: Target, count: number, length = 2 ** 20, addressOf?: (n: number) => string
) => open(port, count, socket => {
  socket.write('POST /blogs/submit HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n' +
    `Authorization: Bearer ${author.token}\r\nContent-Length: ${length}\r\n\r\n${' '.repeat(length - 1)}`)
}, addressOf)

/** Asks for long lists, and does not read them. */
const readNothing = ({ port }: Target, count: number) =>
  open(port, count, socket => { socket.pause().write(HEAD('/events?limit=9999')) })

/** Writes an upload. Calls `done` when the kernel has taken it. */
function upload (socket: Socket, { token }: Person, picture: Buffer, done?: () => void) {
  socket.write('POST /me/pictures HTTP/1.1\r\nHost: a\r\nContent-Type: image/jpeg\r\n' +
    `Authorization: Bearer ${token}\r\nContent-Length: ${picture.length}\r\n\r\n`)
  socket.write(picture, done)
}

/** Runs attacks until it is terminated. It posts a message when they begin. */
export function startAttacks (names: string[], target: Target) {
  return new Worker(new URL(import.meta.url), { workerData: { names, target } })
}

if (!isMainThread && workerData.names) {
  const { names, target } = workerData as { names: string[], target: Target }
  if ([UPLOADS, BESIDE_STREAMS].some(name => names.includes(name))) pictures = await makePictures()
  parentPort!.postMessage('begun')
  let sockets: Socket[] = []
  setInterval(() => {
    if (sockets.every(({ destroyed }) => destroyed)) sockets = names.flatMap(name => ATTACKS[name]!(target))
  }, RETURN)
}

/**
 * Connections of the attacker, which begin when they are open. Node accepts all that wait in one turn of its event
 * loop, which would delay others more than the attack does, so of thousands 200 come at a time.
 */
function open (
  port: number, count: number, begin: (socket: Socket, n: number) => void, addressOf = (_n: number) => ATTACKER
) {
  return Array.from({ length: count }, (_, n) => {
    const socket = new Socket().on('error', () => {})
    const options = { port, host: '127.0.0.1', localAddress: addressOf(n) }
    setTimeout(() => socket.connect(options, () => begin(socket, n)), Math.floor(n / 200) * 100)
    return socket
  })
}
