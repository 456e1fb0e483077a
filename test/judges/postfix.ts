// Mails through the servers of others, from the operation to the mailbox: https://www.postfix.org and
// https://dovecot.org.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

import PostalMime, { type Email } from 'postal-mime'

import { StartupError } from '#lib/errors.js'
import { send } from '../faults/http.ts'
import { SELF, startProgram } from '../faults/programs.ts'
import { freePort } from '../process.ts'
import { findVersion, type Judge, run, type Setting } from './judge.ts'
import { startTarget } from './target.ts'

/** Timeout of a mail, in milliseconds. */
const TIMEOUT = 30_000

/** The mailboxes: `ada` is that of ada@example.org. */
const BOXES = ['ada', 'eve']

/** The password of each mailbox. */
const PASSWORD = 'of-the-judges'

/** The user of Debian's that owns them. */
const OWNER = 'mail'

/** The processes of Postfix as Debian starts them. */
const SERVICES = '/usr/share/postfix/master.cf.dist'

/** As root, whom both need; they end their own processes. */
const PROGRAM = { account: SELF, signal: 'SIGTERM' } as const

const NAMES = {
  firstName: 'Ada\r\nBcc: eve@example.org\r\n\r\n<script>alert(1)</script>',
  lastName: 'Löve & "Låce" <eve@example.org>\u2028漢字',
}

/** The headers that the service writes, and those that Postfix adds. */
const HEADERS = [
  'auto-submitted', 'content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to',
  'delivered-to', 'received', 'return-path', 'x-original-to',
]

/** Sends the mails of an account, whose owner's name is an attack, and reads them by IMAP. */
export const postfix: Judge = {
  program: 'postfix',
  install: 'apt-get install postfix dovecot-imapd',
  version: async setting => findVersion((await run(setting, 'postconf', ['-d', 'mail_version'])).output),

  async run (setting) {
    if (userInfo().uid !== 0) throw new StartupError('Postfix and Dovecot start only as root')
    const { scope, directory } = setting
    const smtp = await startPostfix(setting)
    const imap = await startDovecot(setting)
    const { url } = await startTarget(scope, directory, {
      SMTP_URL: `smtp://127.0.0.1:${smtp}`,
      MAIL_FROM: 'community@example.org',
      COMMUNITY_NAME: 'Ümläut & <Friends>',
      FRONTEND_URL: 'https://app.example.org',
    })
    const post = async (path: string, body: object, status: number) => {
      const outcome = await send(url, { method: 'POST', path, body })
      if (outcome.status !== status) throw new Error(`${path}: ${outcome.status} ${JSON.stringify(outcome.body)}`)
    }

    const email = 'ada@example.org'
    const password = 'correct horse of the judges'
    const findings: string[] = []
    await post('/auth/register', { email, password, ...NAMES }, 201)
    const [verification] = await mailsOf(imap, 'ada', 1)
    await post('/account/email/verify', { token: tokenIn(verification) }, 200)
    await post('/account/password/forgot', { email }, 202)
    const [, forgotten] = await mailsOf(imap, 'ada', 2)
    await post('/account/password/reset', { token: tokenIn(forgotten), password: `${password} again` }, 200)

    const mails = await mailsOf(imap, 'ada', 3)
    for (const mail of mails) findings.push(...flawsOf(mail))
    if ((await readBox(imap, 'eve')).length > 0) findings.push('eve has got a mail')
    return { subject: `${mails.length} mails, read by IMAP, to a person whose name is an attack`, findings }
  },
}

/** The flaws of a mail to the person whose name is an attack. */
function flawsOf ({ headers, from, to, cc, bcc, subject = '', text = '', html = '' }: Email) {
  const flaws: string[] = []
  const others = headers.map(({ key }) => key).filter(key => !HEADERS.includes(key))
  if (others.length > 0) flaws.push(`headers ${others.join(', ')}`)
  if (cc ?? bcc) flaws.push('it has other recipients')
  const name = 'Ada Bcc: eve@example.org <script>alert(1)</script> Löve & "Låce" <eve@example.org> 漢字'
  if (to?.length !== 1 || to[0]!.address !== 'ada@example.org' || to[0]!.name !== name) {
    flaws.push(`it is to ${JSON.stringify(to)}`)
  }
  if (from?.name !== 'Ümläut & <Friends>') flaws.push(`it is from ${JSON.stringify(from)}`)
  if (!text.includes('Ümläut & <Friends>')) flaws.push('the text part is escaped')
  if (!html.includes('Ümläut &amp; &lt;Friends&gt;')) flaws.push('the HTML part is not escaped')
  const elements = new Set(html.match(/<\/?[a-z]+/gi)?.map(tag => tag.replace(/<\/?/, '').toLowerCase()))
  const known = ['html', 'head', 'meta', 'title', 'body', 'p', 'a']
  for (const element of elements) if (!known.includes(element)) flaws.push(`the HTML part has a <${element}>`)
  return flaws.map(flaw => `“${subject}”: ${flaw}`)
}

/** The token in the link of a mail. */
const tokenIn = (mail: Email | undefined) => /#token=([\w-]{43})/.exec(mail?.text ?? '')?.[1]

/** Waits until a mailbox has so many mails. */
async function mailsOf (port: number, user: string, count: number) {
  const deadline = performance.now() + TIMEOUT
  while (performance.now() < deadline) {
    const mails = await readBox(port, user)
    if (mails.length >= count) return Promise.all(mails.map(mail => PostalMime.parse(mail)))
    await sleep(200)
  }
  throw new Error(`Mail ${count} to ${user} does not arrive`)
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
