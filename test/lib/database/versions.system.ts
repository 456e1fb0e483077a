// The last released version and this version on one database: side by side, forward, back and forward again. Everything
// that a person was promised must hold in both: emails that wait for a mail server, avatars, and the end of an office.
import { execFile } from 'node:child_process'
import { mkdir, rm, symlink } from 'node:fs/promises'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import sharp from 'sharp'
import t, { type Test } from 'tap'

import { emptyDatabase } from '../../helper.ts'
import { ACCOUNT, PASSWORD } from '../../fixtures.ts'
import { run, type Service, startService, stop } from '../../process.ts'
import { RUN_DIR } from '../../run.ts'
import { startMailServer } from '../../smtp.ts'

/** The commit of the last release. After a release, put its commit here. */
const RELEASED = 'a8f6fe7992fdada28e8e27e564b6445601e623ab'

/** Builds the released version. It uses the dependencies of this version. */
async function buildReleased () {
  const root = resolve(RUN_DIR, 'released')
  const shell = (command: string) => promisify(execFile)('bash', ['-c', `set -o pipefail; ${command}`], { cwd: '.' })
  await rm(root, { recursive: true, force: true })
  await mkdir(root, { recursive: true })
  await shell(`git archive ${RELEASED} | tar --extract --directory '${root}'`).catch(error => {
    throw new Error(`The commit of the last release is missing. Run "git fetch --unshallow".\n${error.stderr}`)
  })
  await symlink(resolve('node_modules'), `${root}/node_modules`)
  await shell(`cd '${root}' && npx tsc --noCheck`)
  return root
}

const released = await buildReleased()
const { url: DATABASE_URL, sql } = await emptyDatabase(t)
const mail = await startMailServer(t)
let isMailDown = false
mail.fault = () => isMailDown ? { stage: 'connect' } : undefined
function stopMail () {
  isMailDown = true
  mail.hangUp()
}

const ADMIN = { ADMIN_EMAIL: 'admin@example.org', ADMIN_PASSWORD: PASSWORD }
const variables = {
  ...ADMIN,
  DATABASE_URL,
  SMTP_URL: mail.url,
  MAIL_FROM: 'community@example.org',
  MAIL_RATE: '6000',
  JWT_SECRET: 'a secret of both versions, long enough',
  PUBLIC_URL: 'https://api.example.org',
  FRONTEND_URL: 'https://app.example.org',
  REMINDER_HOURS: '0',
}

const startReleased = () => startService(t, variables, { root: released })
const startCurrent = () => startService(t, variables)
const migrate = (root: string) => run(t, resolve(root, 'dist/lib/cli.js'), { DATABASE_URL }, { args: ['migrate'] })

/** Sends a request, and expects a success. */
async function send (service: Service, method: string, path: string, token?: string, body?: object | Buffer) {
  const isFile = Buffer.isBuffer(body)
  const response = await fetch(service.url + path, {
    method,
    headers: {
      ...body && { 'content-type': isFile ? 'image/png' : 'application/json' },
      ...token && { authorization: `Bearer ${token}` },
    },
    body: isFile ? new Uint8Array(body) : body && JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return JSON.parse(text)
}

interface Member {
  email: string
  token: string
}

/** Signs a person up whose email address is verified. */
async function signUp (service: Service, name: string): Promise<Member> {
  const email = `${name}@example.org`
  const { token } = await send(service, 'POST', '/auth/register', undefined, { ...ACCOUNT, email })
  await sql`UPDATE users SET email_verified_at = now() WHERE email = ${email}`
  return { email, token }
}

const file = await sharp({ create: { width: 9, height: 9, channels: 3, background: 'teal' } }).png().toBuffer()
const upload = async (service: Service, { token }: Member): Promise<string> =>
  (await send(service, 'POST', '/me/pictures', token, file)).picture.id
const setAvatar = (service: Service, { token }: Member, avatar: string | null) =>
  send(service, 'PUT', '/me/profile', token, { avatar })
const idOf = (url: string | null) => url && url.split('/pictures/')[1]
const userOf = async (service: Service, { token }: Member) =>
  (await send(service, 'GET', '/auth/me', token)).user
const avatarOf = async (service: Service, member: Member) => idOf((await userOf(service, member)).avatar)

/** Lets everything be due that waits. */
async function skipWaiting () {
  await sql`UPDATE email_batches SET due_at = now() - interval '1 s' WHERE due_at <> 'infinity'`
  await sql`UPDATE emails SET due_at = now() - interval '1 s' WHERE status = 'pending'`
}

/** The emails that were sent since the last call of `assertSent`, as `address: subject`. */
const seen = new Set<string>()
async function news () {
  const all = await Promise.all(mail.emails.map(async ({ to }, n) => `${to[0]}: ${(await mail.parse(n)).subject}`))
  return [...new Set(all)].filter(email => !seen.has(email)).sort()
}

/**
 * Asserts that everybody got these emails, and that nobody got others. A confirmation and a change that are sent at the
 * same time can tell the same, so `perhaps` are emails that somebody may also get, now or later.
 */
async function assertSent (t: Test, promised: string[], perhaps: string[] = []) {
  let sent: string[] = []
  for (let polls = 0; polls < 200 && !promised.every(email => sent.includes(email)); polls++) {
    await skipWaiting()
    await sleep(50)
    sent = await news()
  }
  t.strictSame(sent.filter(email => !perhaps.includes(email)), [...promised].sort())
  for (const email of [...sent, ...perhaps]) seen.add(email)
}
t.test('Two versions keep every promise on one database', async t => {
  t.equal((await migrate(released)).code, 0)
  let old = await startReleased()
  const signIn = async (email: string): Promise<string> =>
    (await send(old, 'POST', '/auth/login', undefined, { email, password: PASSWORD })).token
  const admin = await signIn(ADMIN.ADMIN_EMAIL)
  const head = await signUp(old, 'head')
  const { club } = await send(old, 'POST', '/clubs', admin, {
    name: 'Chess', description: 'A club', clubHeadEmail: head.email,
  })
  head.token = await signIn(head.email)
  const addEvent = async (service: Service, title: string): Promise<string> => {
    const imageUrl = 'https://example.org/a.png'
    const fields = { title, description: 'Ten games at once', data: '2090-01-31T18:00Z', imageUrl }
    return (await send(service, 'POST', '/events', head.token, fields)).event.id
  }
  const register = (service: Service, event: string, { token }: Member) =>
    send(service, 'POST', `/events/${event}/register`, token)
  const rename = (service: Service, event: string, title: string) =>
    send(service, 'PUT', `/events/${event}`, head.token, { title })

  const [ada, bob, cleo, dan] = await Promise.all(['ada', 'bob', 'cleo', 'dan'].map(name => signUp(old, name)))
  const people = [ada!, bob!, cleo!, dan!]
  const [chess, go] = [await addEvent(old, 'Chess'), await addEvent(old, 'Go Night')]
  await register(old, chess, ada!)
  await register(old, go, ada!)
  await assertSent(t, ['Chess', 'Go Night'].map(title => `${ada!.email}: You are registered: ${title}`))

  await t.test('Version 1.0.0 alone, while the mail server is down', async () => {
    stopMail()
    await register(old, chess, bob!)
    await rename(old, chess, 'Chess Night')
    await send(old, 'DELETE', `/events/${go}`, head.token)
    const message = { subject: 'Bring a board', text: 'Please bring a board.' }
    await send(old, 'POST', `/me/events/${chess}/message`, head.token, message)
    const post = { title: 'A post', content: 'Twenty characters or more' }
    const { blog } = await send(old, 'POST', '/blogs/submit', bob!.token, post)
    await send(old, 'POST', `/blogs/${blog.id}/approve`, admin)
    await setAvatar(old, ada!, await upload(old, ada!))
    await setAvatar(old, bob!, await upload(old, bob!))
  })

  t.equal((await migrate('.')).code, 0)
  let current = await startCurrent()
  const avatars = new Map<Member, string | null>()
  const assertAvatars = async (t: Test, ...services: Service[]) => {
    for (const service of services) {
      for (const [member, id] of avatars) {
        t.equal(await avatarOf(service, member), id, member.email)
        if (id) t.equal((await fetch(`${service.url}/pictures/${id}`)).status, 200)
      }
    }
  }

  await t.test('Both versions side by side', async t => {
    const set = async (service: Service, member: Member, avatar: string | null) => {
      await setAvatar(service, member, avatar)
      avatars.set(member, avatar)
    }
    await set(old, ada!, await upload(old, ada!))
    await set(old, bob!, null)
    await set(current, cleo!, await upload(current, cleo!))
    await set(current, dan!, await upload(current, dan!))
    await set(old, dan!, null)
    await assertAvatars(t, old, current)

    // An office of this version has its rights in 1.0.0, and ends there as well.
    await send(current, 'PUT', `/me/clubs/${club.id}`, dan!.token, {})
    const decide = (member: Member, decision: object) => userOf(old, member).then(({ id }) =>
      send(current, 'PUT', `/club-pages/${club.id}/members/${id}`, head.token, decision))
    await decide(dan!, { state: 'member' })
    await decide(dan!, { office: 'deputy' })
    const { token } = await send(current, 'PUT', `/me/clubs/${club.id}/office`, dan!.token, { accept: true })
    await send(old, 'PUT', `/events/${chess}`, token, { title: 'Chess Night' })
    await decide(dan!, { office: null })
    for (const service of [old, current]) {
      await t.rejects(send(service, 'PUT', `/events/${chess}`, token, { title: 'Mine' }), { message: /: 403 / })
    }
    t.equal((await userOf(old, dan!)).role, 'STUDENT')
    // A card of 1.0.0 is a membership in this version, and its end is the end of it.
    const { id } = await userOf(old, cleo!)
    const statesOf = async (member: Member): Promise<string[]> =>
      (await send(current, 'GET', '/me/clubs', member.token)).clubs.map(({ state }: { state: string }) => state)
    await send(old, 'PUT', `/users/${id}`, admin, { clubId: club.id })
    t.strictSame(await statesOf(cleo!), ['member'])
    await send(old, 'PUT', `/users/${id}`, admin, { clubId: null })
    t.strictSame([await statesOf(cleo!), await statesOf(dan!), await statesOf(head)], [[], ['member'], ['member']])
    await register(old, chess, cleo!)
    await register(current, chess, dan!)
    await rename(current, chess, 'Chess Evening')
    await stop(old)
    await stop(current)
    isMailDown = false
    current = await startCurrent()
    await assertSent(t, [
      `${ada!.email}: Cancelled: Go Night`,
      `${ada!.email}: Changed: Chess Evening`,
      ...[bob, cleo, dan].map(member => `${member!.email}: You are registered: Chess Evening`),
      ...[ada, bob].map(member => `${member!.email}: Bring a board`),
      `${bob!.email}: Your blog post has been published: A post`,
      `${dan!.email}: You are a member of Chess`,
      `${dan!.email}: You no longer organize Chess`,
    ], [bob, cleo, dan].map(member => `${member!.email}: Changed: Chess Evening`))
    old = await startReleased()
  })

  /** Deletes pictures that nothing uses, in the eyes of a version. */
  const sweep = async (service: Service) => {
    await sql`UPDATE pictures SET unused_since = now() - interval '2 days' WHERE unused_since IS NOT NULL`
    for (const member of people) await upload(service, member)
  }

  await t.test('Forward, back and forward again', async t => {
    await sweep(old)
    await sweep(current)
    await assertAvatars(t, old, current)
    await stop(old)

    // Emails that 1.0.0 does not know wait.
    stopMail()
    const [tea] = [await addEvent(current, 'Tea')]
    await send(current, 'PUT', `/agenda/${tea}`, head.token, { capacity: 1 })
    await register(current, tea, ada!)
    await register(current, tea, bob!)
    await sql`UPDATE emails SET status = 'sent', settled_at = now() WHERE status = 'pending'`
    await send(current, 'PUT', `/me/seats/${tea}`, ada!.token, { coming: false })
    await rename(current, chess, 'Chess Day')
    await stop(current)

    isMailDown = false
    old = await startReleased()
    await register(old, chess, head)
    await assertSent(t, [
      `${head.email}: You are registered: Chess Day`,
      ...people.map(({ email }) => `${email}: Changed: Chess Day`),
    ])
    await setAvatar(old, cleo!, null)
    avatars.set(cleo!, null)
    await sweep(old)
    await assertAvatars(t, old)
    await stop(old)

    current = await startCurrent()
    await assertSent(t, [`${bob!.email}: You have a seat: Tea`, `${dan!.email}: Chess: Tea`])
    await sweep(current)
    await assertAvatars(t, current)
  })

  await t.test('A draw that was set before the way back to 1.0.0 leaves nobody out', async t => {
    stopMail()
    const dinner = await addEvent(current, 'Dinner')
    await send(current, 'PUT', `/agenda/${dinner}`, head.token, { capacity: 1, drawAt: '2089-01-31T18:00Z' })
    await register(current, dinner, ada!)
    await stop(current)

    // Version 1.0.0 knows no draw: it says the same to everybody, and draws nothing.
    isMailDown = false
    old = await startReleased()
    await register(old, dinner, bob!)
    await assertSent(t, [ada, bob].map(member => `${member!.email}: You are registered: Dinner`))
    stopMail()
    await sql`UPDATE event_details SET draw_at = now() WHERE event_id = ${dinner}`
    await register(old, dinner, cleo!)
    await stop(old)
    await sql`UPDATE emails SET attempts = 0, due_at = now() + interval '1 hour' WHERE status = 'pending'`

    current = await startCurrent()
    const drawOf = async (): Promise<{ order: string[] | null }> =>
      (await send(current, 'GET', `/agenda/${dinner}/draw`)).draw
    while (!(await drawOf()).order) await sleep(50)
    const isWritten = () => sql`
      SELECT FROM email_batches WHERE template = 'draw' AND key = ${dinner} AND due_at = 'infinity'
    `
    while ((await isWritten()).count === 0) await sleep(50)
    interface Listed {
      registrationId: string
      email: string
      state: string
      position: number | null
    }
    const list = async (): Promise<Listed[]> =>
      (await send(current, 'GET', `/agenda/${dinner}/seats`, head.token)).seats
    const drawn = await list()
    t.strictSame(drawn.map(({ email }) => email).sort(), [ada, bob, cleo].map(member => member!.email))
    t.strictSame(drawn.map(({ registrationId }) => registrationId), (await drawOf()).order)
    await stop(current)

    // The confirmation of 1.0.0 tells no seat, so the email about the draw follows it.
    isMailDown = false
    old = await startReleased()
    await register(old, dinner, dan!)
    await assertSent(t, [cleo, dan].map(member => `${member!.email}: You are registered: Dinner`))
    await stop(old)

    current = await startCurrent()
    const [winner, ...others] = drawn
    await assertSent(t, [
      `${winner!.email}: You have a seat: Dinner`,
      ...others.map(({ email }) => `${email}: You are waiting for a seat: Dinner`),
      `${dan!.email}: Chess: Dinner`,
    ])
    t.match(await list(), [...drawn, { email: dan!.email, state: 'waiting', position: 3 }])
    await stop(current)
  })
})
