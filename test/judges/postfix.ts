// Mails through the servers of others, from the operation to the mailbox: https://www.postfix.org and
// https://dovecot.org.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'

import ICAL from 'ical.js'
import PostalMime, { type Email } from 'postal-mime'

import { StartupError } from '#lib/errors.js'
import { printableLine } from '#lib/formats.js'
import { SELF, startProgram } from '../faults/programs.ts'
import { freePort } from '../process.ts'
import { findVersion, type Judge, run, type Setting } from './judge.ts'
import { causeMails, HEAD, inbox, MEMBER, REMINDING, type Words } from './mails.ts'
import { startTarget } from './target.ts'

/** The mailboxes: `ada` is that of ada@example.org. */
const BOXES = ['ada', 'grace', 'lovelace', 'eve']

/** The password of each mailbox. */
const PASSWORD = 'of-the-judges'

/** The user of Debian's that owns them. */
const OWNER = 'mail'

/** The processes of Postfix as Debian starts them. */
const SERVICES = '/usr/share/postfix/master.cf.dist'

/** As root, whom both need; they end their own processes. */
const PROGRAM = { account: SELF, signal: 'SIGTERM' } as const

/** Attacks on the header, the HTML, the calendar, and SMTP. */
const WORDS: Words = {
  firstName: 'Ada\r\nBcc: eve@example.org\r\n\r\n<script>alert(1)</script>',
  lastName: 'Löve & "Låce" <eve@example.org>\u2028漢字',
  club: 'Club "A";CN=x:y\r\nATTENDEE:mailto:eve@example.org\r\n<b>Läufer</b> & Co',
  title: 'Chess\r\nCc: eve@example.org\r\n\r\n<img src=x onerror=alert(1)>, "Night"; \\n END:VEVENT',
  newTitle: '=?utf-8?q?Go?= \u2028DTSTART:20200101T000000Z\r\n<!-- & “漢字”',
  blog: 'Ten games\r\n\r\n.\r\n</title><script>alert(2)</script>',
  subject: 'Boards\r\nTo: eve@example.org\r\n\r\n<i>x</i>',
  text: 'Dear all,\r\n.\r\nQUIT\r\n.. <style>p { display: none }</style> & "boards"\r\n\r\n-- \r\nBEGIN:VCALENDAR',
}

/** Words that a mail must contain, by its kind. */
const CONTENTS: Record<string, string[]> = {
  registration: [WORDS.title, WORDS.club],
  'event-reminder': [WORDS.title, WORDS.club],
  'event-message': [WORDS.title, WORDS.firstName, WORDS.lastName, ...WORDS.text.split('\r\n').filter(Boolean)],
  'blog-decision': [WORDS.blog],
  'blog-archived': [WORDS.blog],
  'event-changed': [WORDS.title, WORDS.newTitle],
  'event-cancelled': [WORDS.newTitle, WORDS.club],
}

/** The title, and the method, sequence and year of the calendar in these mails. */
const CALENDARS: Record<string, [title: string, method: string, sequence: number, year: number]> = {
  registration: [WORDS.title, 'PUBLISH', 0, new Date().getUTCFullYear()],
  'event-changed': [WORDS.newTitle, 'PUBLISH', 1, 2999],
  'event-cancelled': [WORDS.newTitle, 'CANCEL', 2, 2999],
}

/** The headers that the service writes, and those that Postfix adds. */
const HEADERS = [
  'auto-submitted', 'content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to',
  'delivered-to', 'received', 'return-path', 'x-original-to',
]
const LIST_HEADERS = ['list-id', 'list-unsubscribe', 'list-unsubscribe-post']

/** Sends the mails of a member, with attacks in all that people write, and reads them by IMAP. */
export const postfix: Judge = {
  program: 'postfix',
  install: 'apt-get install postfix dovecot-imapd',
  version: async setting => findVersion((await run(setting, 'postconf', ['-d', 'mail_version'])).output),

  async run (setting) {
    if (userInfo().uid !== 0) throw new StartupError('Postfix and Dovecot start only as root')
    const { scope, directory } = setting
    const smtp = await startPostfix(setting)
    const imap = await startDovecot(setting)
    const target = await startTarget(scope, directory, {
      ...REMINDING,
      SMTP_URL: `smtp://127.0.0.1:${smtp}`,
      MAIL_FROM: 'community@example.org',
      COMMUNITY_NAME: 'Ümläut & <Friends>',
      FRONTEND_URL: 'https://app.example.org',
      PUBLIC_URL: 'https://api.example.org',
    })
    const read = async (email: string) =>
      Promise.all((await readBox(imap, email.split('@')[0]!)).map(mail => PostalMime.parse(mail)))
    const mails = Object.entries(await causeMails(target, WORDS, inbox(read)))
    const findings = mails.flatMap(([kind, mail]) => flawsOf(kind, mail))
    if ((await read('eve@example.org')).length > 0) findings.push('eve has got a mail')
    return { subject: `${mails.length} mails, read by IMAP, with attacks in all that people write`, findings }
  },
}

/** The flaws of a mail whose words are attacks. */
function flawsOf (kind: string, mail: Email) {
  const { headers, from, to, cc, bcc, replyTo, text = '', html = '' } = mail
  const flaws: string[] = []
  const words = CONTENTS[kind]
  const known = [...HEADERS, ...words ? LIST_HEADERS : [], ...kind === 'event-message' ? ['reply-to'] : []]
  const others = headers.map(({ key }) => key).filter(key => !known.includes(key))
  if (others.length > 0) flaws.push(`headers ${others.join(', ')}`)
  if (cc ?? bcc) flaws.push('it has other recipients')
  const name = 'Ada Bcc: eve@example.org <script>alert(1)</script> Löve & "Låce" <eve@example.org> 漢字'
  // An address that is not verified may be a stranger's: the name would be an attack.
  const toName = ['email-verification', 'email-changed'].includes(kind) ? '' : name
  if (to?.length !== 1 || to[0]!.address !== MEMBER || to[0]!.name !== toName) {
    flaws.push(`it is to ${JSON.stringify(to)}`)
  }
  if (replyTo && (replyTo.length !== 1 || replyTo[0]!.address !== HEAD || replyTo[0]!.name !== name)) {
    flaws.push(`responses go to ${JSON.stringify(replyTo)}`)
  }
  if (from?.name !== 'Ümläut & <Friends>') flaws.push(`it is from ${JSON.stringify(from)}`)
  for (const written of words ?? ['Ümläut & <Friends>']) {
    const word = printableLine(written)
    if (!text.includes(word)) flaws.push(`the text part does not have ${word}`)
    if (!html.includes(escape(word))) flaws.push(`the HTML part does not have ${escape(word)}`)
  }
  const elements = new Set(html.match(/<[/!]?[a-z-]+/gi)?.map(tag => tag.replace(/<\/?/, '').toLowerCase()))
  const plain = ['!doctype', 'html', 'head', 'meta', 'title', 'body', 'p', 'br', 'a', 'footer']
  for (const element of elements) if (!plain.includes(element)) flaws.push(`the HTML part has a <${element}>`)
  return [...flaws, ...calendarFlawsOf(kind, mail)].map(flaw => `${kind}: ${flaw}`)
}

const ENTITIES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escape = (text: string) => text.replace(/[&<>"']/g, character => ENTITIES[character]!)

/** The flaws of the calendar in a mail: once as a part, once as a file. */
function calendarFlawsOf (kind: string, { attachments }: Email) {
  const expected = CALENDARS[kind]
  if (attachments.length !== (expected ? 2 : 0)) return [`it has ${attachments.length} attachments`]
  return attachments.flatMap(({ content }) => {
    const [title, ...rest] = expected!
    const calendar = new ICAL.Component(ICAL.parse(new TextDecoder().decode(content as ArrayBuffer)))
    const [event, ...others] = calendar.getAllSubcomponents().map(component => new ICAL.Event(component))
    const found = [
      event!.summary, event!.component.getFirstProperty('organizer')!.getParameter('cn'), others.length,
      event!.attendees.length, calendar.getFirstPropertyValue('method'), event!.sequence, event!.startDate.year,
    ]
    const wanted = [printableLine(title), printableLine(WORDS.club), 0, 0, ...rest]
    return JSON.stringify(found) === JSON.stringify(wanted) ? [] : [`the calendar says ${JSON.stringify(found)}`]
  })
}

/** The mails in a mailbox, by IMAP (RFC 9051). */
async function readBox (port: number, user: string) {
  const socket = connect(port, '127.0.0.1')
  socket.write(`a LOGIN ${user} ${PASSWORD}\r\nb SELECT INBOX\r\nc FETCH 1:* BODY.PEEK[]\r\nd LOGOUT\r\n`)
  const answer = await buffer(socket)
  const mails: Buffer[] = []
  // Each is a literal: its length, and so many bytes.
  for (let at = 0; ;) {
    const literal = /BODY\[\] \{(\d+)\}\r\n/.exec(answer.toString('latin1', at))
    if (!literal) return mails
    const start = at + literal.index + literal[0].length
    at = start + Number(literal[1])
    mails.push(answer.subarray(start, at))
  }
}

/** Starts Postfix with a configuration and a queue of its own. Returns its port. */
async function startPostfix (setting: Setting) {
  const { scope, directory } = setting
  const port = await freePort()
  const config = join(directory, 'postfix')
  for (const name of ['postfix', 'postfix-queue', 'postfix-data', 'mail']) await mkdir(join(directory, name))
  await run(setting, 'chown', ['postfix', 'postfix-data'])
  await run(setting, 'chown', [OWNER, 'mail'])
  const { stdout: uid } = await run(setting, 'id', ['--user', OWNER])
  const { stdout: gid } = await run(setting, 'id', ['--group', OWNER])
  await writeFile(join(config, 'main.cf'), `
compatibility_level = 3.6
queue_directory = ${directory}/postfix-queue
data_directory = ${directory}/postfix-data
maillog_file = /dev/stdout
inet_interfaces = 127.0.0.1
myhostname = judge.example.org
mydestination =
alias_maps =
smtpd_relay_restrictions = reject_unauth_destination
virtual_mailbox_domains = example.org
virtual_mailbox_base = ${directory}/mail
virtual_mailbox_maps = inline:{${BOXES.map(box => `${box}@example.org=${box}/`).join(', ')}}
virtual_minimum_uid = 1
virtual_uid_maps = static:${uid.trim()}
virtual_gid_maps = static:${gid.trim()}
`)
  const services = await readFile(SERVICES, 'utf8')
  await writeFile(join(config, 'master.cf'), services
    .replace(/^smtp +inet.*$/m, `127.0.0.1:${port} inet n - n - - smtpd`)
    // Without chroot, which needs files of the system.
    .replace(/^(\w+ +unix +\S+ +\S+ +)y/gm, '$1n'))
  await startProgram(scope, directory, 'postfix', port, ['-c', config, 'start-fg'], PROGRAM)
  // The process that was started waits for another one.
  scope.teardown(() => run(setting, 'postfix', ['-c', config, 'stop']))
  return port
}

/** Starts Dovecot for the mailboxes. Returns its port. */
async function startDovecot ({ scope, directory }: Setting) {
  const port = await freePort()
  await writeFile(join(directory, 'dovecot.conf'), `
base_dir = ${directory}/dovecot
log_path = /dev/stderr
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = maildir:${directory}/mail/%u
passdb {
  driver = static
  args = password=${PASSWORD}
}
userdb {
  driver = static
  args = uid=${OWNER} gid=${OWNER} home=${directory}/mail/%u
}
service imap-login {
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = 0
  }
}
`)
  await startProgram(scope, directory, 'dovecot', port, ['-F', '-c', join(directory, 'dovecot.conf')], PROGRAM)
  return port
}
