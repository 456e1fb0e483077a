// Emails to a member, caused by the operations of others.
import { setTimeout as sleep } from 'node:timers/promises'

import type { Email } from 'postal-mime'

import { send } from '../faults/http.ts'
import type { Target } from './target.ts'

/** The member, and the head of the club. */
const MEMBER = 'ada@example.org'
const HEAD = 'grace@example.org'
/** The address that an admin gives the member in the end. */
const NEW = 'lovelace@example.org'

const PASSWORD = 'correct horse of the judges'

/** The environment of a service whose reminders come soon after a registration. */
export const REMINDING = { REMINDER_HOURS: '1' }

/** So much later the event is reminded of, in milliseconds. */
const UNTIL_REMINDER = 20_000

/** How long an email may take: a change is told after two minutes. */
const PATIENCE = 180_000

/** Waits for the next email to an address. `read` returns all that have arrived there. */
export function inbox (read: (email: string) => Promise<Email[]>) {
  const arrived = new Set<string>()
  return async (email: string) => {
    const deadline = performance.now() + PATIENCE
    while (performance.now() < deadline) {
      const found = (await read(email)).find(({ messageId }) => !arrived.has(messageId!))
      if (found) {
        arrived.add(found.messageId!)
        return found
      }
      await sleep(500)
    }
    throw new Error(`No email to ${email} arrives after ${arrived.size} others`)
  }
}

/** Causes an email of each kind to the member, one after the other. Returns them by their templates. */
export async function causeEmails ({ url, signIns, password }: Target, next: (email: string) => Promise<Email>) {
  const call = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object, token = '') => {
    const outcome = await send(url, { method, path, body, token })
    if (outcome.status >= 300) throw new Error(`${method} ${path}: ${outcome.status} ${JSON.stringify(outcome.body)}`)
    return outcome.body
  }
  const signIn = async (email: string, password: string) =>
    (await call('POST', '/auth/login', { email, password })).token as string
  const emails: Record<string, Email> = {}
  const receive = async (template: string) => {
    emails[template] = await next(MEMBER)
    return emails[template]
  }
  const tokenIn = ({ text }: Email) => /#token=([\w-]{43})/.exec(text!)![1]

  const join = async (email: string) => {
    await call('POST', '/auth/register', { email, password: PASSWORD, firstName: 'Ada', lastName: 'Lovelace' })
    return next(email)
  }
  const prove = (email: Email) => call('POST', '/account/email/verify', { token: tokenIn(email) })
  await prove(await join(HEAD))
  emails['email-verification'] = await join(MEMBER)
  await prove(emails['email-verification'])
  await call('POST', '/account/password/forgot', { email: MEMBER })
  const secret = `${PASSWORD} again`
  await call('POST', '/account/password/reset', { token: tokenIn(await receive('password-reset')), password: secret })
  await receive('password-changed')

  const admin = await signIn(signIns.find(({ role }) => role === 'ADMIN')!.email, password)
  await call('POST', '/clubs', { name: 'Chess Club', description: 'Ten games at once', clubHeadEmail: HEAD }, admin)
  const [head, member] = [await signIn(HEAD, PASSWORD), await signIn(MEMBER, secret)]
  const { event: { id } } = await call('POST', '/events', {
    title: 'Chess Night',
    description: 'Ten games at once',
    data: new Date(Date.now() + Number(REMINDING.REMINDER_HOURS) * 3_600_000 + UNTIL_REMINDER).toISOString(),
    imageUrl: 'https://images.example.org/chess.png',
  }, head)
  await call('POST', `/events/${id}/register`, {}, member)
  await receive('registration')
  await receive('event-reminder')
  await call('POST', `/me/events/${id}/message`, {
    subject: 'Bring a board',
    text: 'We have fewer boards than guests this time.\n\nIf you can, please bring one.',
  }, head)
  await receive('event-message')
  const { blog: { id: blogId } } = await call('POST', '/blogs/submit', {
    title: 'Ten games at once', content: 'Ten games at once, and all of them lost.',
  }, member)
  await call('POST', `/blogs/${blogId}/approve`, {}, admin)
  await receive('blog-decision')
  await call('PUT', `/events/${id}`, { title: 'Chess Evening', data: '2999-01-31T18:30:00.000Z' }, head)
  await receive('event-changed')
  await call('DELETE', `/events/${id}`, undefined, head)
  await receive('event-cancelled')
  const { users } = await call('GET', '/users', undefined, admin)
  const { id: userId } = users.find(({ email }: { email: string }) => email === MEMBER)
  await call('PUT', `/users/${userId}`, { email: NEW }, admin)
  await receive('email-changed')
  await prove(await next(NEW))
  return emails
}
