import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import {
  appendFile, chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import postgres from 'postgres'
import t from 'tap'

import { findAccount, findBinaries, startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
import { migrate } from '#lib/database/migrations.js'
import { StartupError } from '#lib/config/startup-error.js'
import { asSuperuser } from '../../run.ts'

// Creates, starts and kills servers.

const run = promisify(execFile)

type Test = Pick<typeof t, 'teardown'>
type Intercepting = Pick<typeof t, 'intercept'>

const self = { uid: process.getuid!(), gid: process.getgid!() }
const isRoot = self.uid === 0
const nobody = { uid: 65_534, gid: 65_534 }
const { initdb, pg_ctl: control } = await findBinaries()

/** A folder that only its owner can enter, removed when the test ends. */
await mkdir('.data', { recursive: true })
const parent = resolve(await mkdtemp('.data/embedded-'))
t.teardown(() => rm(parent, { recursive: true, maxRetries: 5 }))

let count = 0
const newHome = () => join(parent, String(++count))

/** A logger that collects its lines. */
function fakeLog () {
  const lines: string[] = []
  const add = (line: string) => lines.push(line)
  return { lines, info: add, warn: add }
}

const start = (home: string, log = fakeLog()) => startEmbeddedPostgres(home, log as never)

/** Waits until the log says that the server was restarted. */
async function recovery ({ lines }: ReturnType<typeof fakeLog>) {
  while (lines.at(-1) !== 'Connected to the embedded PostgreSQL again') await sleep(20)
}

/** The message of the StartupError. */
async function refusal (promise: Promise<unknown>) {
  return promise.catch(error => error instanceof StartupError ? error.message : error)
}

/** A stopped data folder with one row: a copy, because initdb is slow. */
async function newData (t: Test) {
  const home = newHome()
  await run('cp', ['-a', seed, home])
  t.teardown(() => stopServer(home))
  return home
}

const pidFile = (home: string) => join(home, 'postgres', 'postmaster.pid')

/** The pid of the running server on this data. */
async function serverPid (home: string) {
  const pid = Number((await readFile(pidFile(home), 'utf8').catch(() => '')).split('\n', 1))
  return pid && await isAlive(pid) ? pid : undefined
}

/** Whether the process runs. A zombie does not. */
async function isAlive (pid: number) {
  try {
    process.kill(pid, 0)
    return !/\) Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''))
  } catch {
    return false
  }
}

/** Kills a server by a signal, or makes it crash. */
async function end (pid: number, signal: 'SIGQUIT' | 'SIGKILL') {
  process.kill(pid, signal)
  await ended(pid)
}

async function ended (pid: number) {
  while (await isAlive(pid)) await sleep(20)
}

/** Removes leftovers of a failed test. */
async function stopServer (home: string) {
  const pid = await serverPid(home)
  if (pid && pid !== process.pid) await end(pid, 'SIGQUIT')
}

/** Runs a query on a new connection. */
async function query<T> (url: string, ask: (sql: postgres.Sql) => Promise<T>) {
  const sql = postgres(url, { max: 1, onnotice () {} })
  try {
    return await ask(sql)
  } finally {
    await sql.end()
  }
}

const kept = (url: string) => query(url, async sql => [...await sql`SELECT * FROM kept`])
const KEPT = [{ row: 1 }]

/** Waits until the server has this many users: it notices a closed connection a moment later. */
async function used (url: string, users: number) {
  await query(url, async sql => {
    const locks = () => sql`SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted`
    while ((await locks()).length !== users) await sleep(20)
  })
}

/** Starts a process that starts the server, prints its URL, and runs until it is killed. */
async function startElsewhere (t: Test, home: string, wrapper: string[] = []) {
  const script = `import { startEmbeddedPostgres } from '#lib/database/embedded-postgres.js'
    console.log((await startEmbeddedPostgres(${JSON.stringify(home)}, { info () {}, warn () {} })).url)`
  // Without coverage, see test/process.ts.
  const command = [...wrapper, process.execPath, '--input-type=module', '--eval', script]
  const child = spawn('env', ['-u', 'NODE_OPTIONS', ...command], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { child.kill('SIGKILL') })
  const [line] = await once(child.stdout, 'data')
  return {
    url: String(line).trim(),
    async kill () {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

const seed = newHome()
const firstLog = fakeLog()
const firstStart = await start(seed, firstLog)
t.teardown(() => stopServer(seed))
await query(firstStart.url, sql => sql`CREATE TABLE kept AS SELECT 1 AS row`)
const [firstSettings] = await query(asSuperuser(firstStart.url), async sql => sql`
  SELECT current_database() AS database, current_setting('listen_addresses') AS listen,
    current_setting('unix_socket_directories') AS sockets, current_setting('server_encoding') AS encoding,
    (SELECT datcollate FROM pg_database WHERE datname = current_database()) AS collate
`)
const firstPid = await serverPid(seed)
await firstStart.release()

t.test('The first start creates the data, logs one line, and the last release stops the server', async t => {
  t.strictSame(firstLog.lines, [`Creating the embedded PostgreSQL in ${join(seed, 'postgres')} (first start only)`])
  t.match(firstStart.url, /^postgres:\/\/community:[A-Za-z0-9_-]{64}@127\.0\.0\.1:\d+\/postgres$/)
  t.strictSame(firstSettings, {
    database: 'postgres', listen: '127.0.0.1', sockets: '', encoding: 'UTF8', collate: 'C',
  })
  t.type(firstPid, 'number')
  await ended(firstPid!)
  t.equal(existsSync(pidFile(seed)), false)
})

t.test('The service owns its database and is no superuser, also with data of version 1.0', async t => {
  const home = await newData(t)
  const first = await start(home)
  const superuser = asSuperuser(first.url)
  await migrate(first.url)
  const RIGHTS = `SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls AS rights
    FROM pg_roles WHERE rolname = current_user`
  t.strictSame([...await query(first.url, sql => sql.unsafe(RIGHTS))], [{ rights: false }])
  await t.rejects(query(first.url, sql => sql`COPY kept TO PROGRAM 'true'`), { code: '42501' })

  // In version 1.0, the superuser had everything.
  await query(superuser, async sql => {
    await sql`REASSIGN OWNED BY community TO postgres`
    await sql`DROP OWNED BY community`
    await sql`DROP ROLE community`
  }).catch(error => t.error(error))
  await first.release()
  const [second, third] = await Promise.all([start(home), start(home)])
  t.strictSame([...await query(second.url, sql => sql.unsafe(RIGHTS))], [{ rights: false }])
  t.strictSame(await kept(second.url), KEPT)
  const owned = await query(second.url, sql => sql`
    SELECT relname AS name, relowner::regrole::text AS owner FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT proname, proowner::regrole::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
  `)
  t.ok(owned.length > 50)
  t.strictSame(owned.filter(({ owner }) => owner !== 'community'), [])
  t.strictSame((await migrate(second.url, 'down', 3)).length, 3, 'the owner can change the schema')
  await Promise.all([second.release(), third.release()])
})

t.test('The second start finds the data, creates nothing, and the server requires its password', async t => {
  const log = fakeLog()
  const server = await start(await newData(t), log)
  t.strictSame(log.lines, [])
  t.strictSame(await kept(server.url), KEPT)
  const url = Object.assign(new URL(server.url), { password: 'guessed' }).href
  await t.rejects(kept(url), { code: '28P01' })
  await server.release()
})

t.test('Concurrent starts on a new folder share one server, which the last release stops', async t => {
  const home = newHome()
  t.teardown(() => stopServer(home))
  const [one, other] = await Promise.all([start(home), start(home)])
  t.equal(one.url, other.url)
  const pid = await serverPid(home)
  await one.release()
  t.equal(await serverPid(home), pid, 'the other process still uses it')
  t.strictSame(await query(other.url, async sql => [...await sql`SELECT 1 AS row`]), KEPT)
  await other.release()
  t.equal(await serverPid(home), undefined)
  const { stdout } = await run('ls', [home])
  t.strictSame(stdout.trim().split('\n'), ['postgres', 'postgres-password', 'postgres.log'], 'no temporary files')
})

t.test('A server whose starter was killed is joined, and stopped in the end', async t => {
  const home = await newData(t)
  const starter = await startElsewhere(t, home)
  const pid = await serverPid(home)
  await starter.kill()
  await used(starter.url, 0)
  t.equal(await serverPid(home), pid, 'left behind')

  const server = await start(home)
  t.equal(server.url, starter.url)
  t.equal(await serverPid(home), pid)
  t.strictSame(await kept(server.url), KEPT)
  await server.release()
  t.equal(await serverPid(home), undefined)
})

t.test('After the server was killed, release does nothing, and the next start finds all data', async t => {
  const home = await newData(t)
  const server = await start(home)
  await query(server.url, sql => sql`CREATE TABLE more AS SELECT 2 AS row`)
  await end((await serverPid(home))!, 'SIGKILL')
  await server.release()

  const next = await start(home)
  t.strictSame(await kept(next.url), KEPT)
  t.strictSame(await query(next.url, async sql => [...await sql`SELECT * FROM more`]), [{ row: 2 }])
  await next.release()
  t.equal(await serverPid(home), undefined)
})

t.test('If the server was killed and cannot start again, release does nothing', async t => {
  const home = await newData(t)
  const server = await start(home)
  await appendFile(join(home, 'postgres', 'postgresql.conf'), "no_such_setting = 'on'\n")
  await end((await serverPid(home))!, 'SIGKILL')
  await server.release()
  t.equal(await serverPid(home), undefined)
})

t.test('A server that dies is restarted on the same port, any number of times, and stopped in the end', async t => {
  const home = await newData(t)
  const log = fakeLog()
  const server = await start(home, log)
  for (const signal of ['SIGKILL', 'SIGQUIT'] as const) {
    await end((await serverPid(home))!, signal)
    await recovery(log)
    t.strictSame(await kept(server.url), KEPT)
    t.equal(log.lines[0], 'The connection to the embedded PostgreSQL was lost')
    log.lines.length = 0
  }
  // It counts as used again: a release elsewhere does not stop it.
  await (await start(home)).release()
  t.strictSame(await kept(server.url), KEPT)
  await server.release()
  t.equal(await serverPid(home), undefined)
})

t.test('A server that cannot be restarted is retried until it can', async t => {
  const home = await newData(t)
  const log = fakeLog()
  const server = await start(home, log)
  const file = join(home, 'postgres', 'postgresql.conf')
  const settings = await readFile(file)
  await appendFile(file, "no_such_setting = 'on'\n")
  await end((await serverPid(home))!, 'SIGKILL')
  while (!log.lines.some(line => line.includes('contains errors'))) await sleep(20)
  await writeFile(file, settings)
  await recovery(log)
  t.strictSame(await kept(server.url), KEPT)
  await server.release()
  t.equal(await serverPid(home), undefined)
})

t.test('A pid file is removed if its pid belongs to a different program', async t => {
  const home = await newData(t)
  await writeFile(pidFile(home), [process.pid, join(home, 'postgres'), 1, 5432, '', '127.0.0.1', '', ''].join('\n'))
  const server = await start(home)
  t.not(await serverPid(home), process.pid)
  t.strictSame(await kept(server.url), KEPT)
  await server.release()
  t.equal(await serverPid(home), undefined)
})

t.test('A server is joined if it belongs to a different user, or if its command is unknown', async t => {
  const home = await newData(t)
  const server = await start(home)
  const content = await readFile(pidFile(home), 'utf8')
  // /proc/0123 does not exist, like /proc on other systems.
  await writeFile(pidFile(home), `0${content}`)
  const kill = t.capture(process, 'kill', (() => {
    throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' })
  }) as typeof process.kill)
  const other = await start(home)
  kill.restore()
  t.ok(kill.calls.length > 0)
  t.equal(other.url, server.url)
  await writeFile(pidFile(home), content)
  await other.release()
  await server.release()
  t.equal(await serverPid(home), undefined)
})

t.test('A server that does not respond is a StartupError after the timeout', async t => {
  const home = await newData(t)
  const server = await start(home)
  await query(asSuperuser(server.url), sql =>
    sql.unsafe("ALTER ROLE community PASSWORD 'another'; ALTER ROLE postgres PASSWORD 'another'"))
  const now = Date.now
  let passed = 0
  t.capture(Date, 'now', () => now() + (passed += 20_000))
  t.equal(await refusal(start(home)), 'The embedded PostgreSQL runs but does not respond: ' +
    'password authentication failed for user "postgres"')
  t.type(await serverPid(home), 'number')
  await used(Object.assign(new URL(server.url), { password: 'another' }).href, 1)
  await server.release()
  t.equal(await serverPid(home), undefined)
})

t.test('A failed release is reported', async t => {
  const home = await newData(t)
  const server = await start(home)
  await query(server.url.replace(/postgres$/, 'template1'), async sql => {
    await sql`ALTER DATABASE postgres ALLOW_CONNECTIONS false`
    await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`
  })
  await t.rejects(server.release())
  t.type(await serverPid(home), 'number')
})

t.test('Unusable data is a StartupError of one line', async t => {
  const home = await newData(t)
  const data = join(home, 'postgres')
  const see = `(see ${join(home, 'postgres.log')})`

  await writeFile(join(data, 'PG_VERSION'), '9.6\n')
  const other = String(await refusal(start(home)))
  t.ok(other.startsWith('Cannot start the embedded PostgreSQL: '), other)
  t.ok(other.endsWith(`FATAL:  database files are incompatible with server ${see}`), other)
  t.notMatch(other, /\n/)

  await writeFile(join(data, 'PG_VERSION'), '18\n')
  await appendFile(join(data, 'postgresql.conf'), "no_such_setting = 'on'\n")
  const broken = String(await refusal(start(home)))
  t.ok(broken.startsWith('Cannot start the embedded PostgreSQL: '), broken)
  t.ok(broken.endsWith(`contains errors ${see}`), broken)
  t.notMatch(broken, /\n/)

  await rm(join(data, 'PG_VERSION'))
  const empty = String(await refusal(start(home)))
  t.match(empty, /^Cannot start the embedded PostgreSQL: [^\s(][^\n]*$/, 'with the reason')
  t.equal(await serverPid(home), undefined)
})

t.test('Data that cannot be created is a StartupError of one line, and leaves no temporary files', async t => {
  const home = newHome()
  await mkdir(home)
  await writeFile(join(home, 'postgres-password'), '')
  t.match(await refusal(start(home)), /^[^\n]*password file "[^\n]*" is empty[^\n]*$/)
  const { stdout } = await run('ls', [home])
  t.equal(stdout, 'postgres-password\n')
})

t.test('An unknown platform has no embedded PostgreSQL', async t => {
  t.equal(await refusal(findBinaries('plan9-mips')), 'The embedded PostgreSQL does not support plan9-mips. ' +
    'Set DATABASE_URL to the URL of a PostgreSQL 14 or newer.')
  t.equal(dirname(initdb), dirname(control))
  t.equal(existsSync(initdb), true)
})

/** Linux capabilities that grant access to folders. */
const DAC_OVERRIDE = 1 << 1
const DAC_READ_SEARCH = 1 << 2

/** The capabilities of a process; 0 without /proc. */
async function capabilities (pid: number | 'self') {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'CapEff:\t0')
  return Number.parseInt(/^CapEff:\t(\w+)/m.exec(status)![1]!, 16)
}

/** The user that runs the server on this data, and its capabilities. */
async function privileges (home: string) {
  const pid = (await serverPid(home))!
  const { stdout } = await run('ps', ['-o', 'uid=', '-p', String(pid)])
  return { uid: Number(stdout), capabilities: await capabilities(pid) }
}

/** The capability that lets the server enter the folders of these paths; 0 if a capability is not needed. */
async function grant (...paths: string[]) {
  const isOpen = async (path: string) => run('test', ['-x', path], nobody).then(() => true, () => false)
  if (!isRoot || !(await Promise.all(paths.map(isOpen))).includes(false)) return 0
  // Under a umask of 077 the programs are only executable with this one.
  if (!((await stat(initdb)).mode & 0o001)) return DAC_OVERRIDE
  return await capabilities('self') & DAC_READ_SEARCH || DAC_OVERRIDE
}

/** A folder that all users can enter, removed when the test ends. */
async function openFolder (t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'embedded-'))
  t.teardown(() => rm(folder, { recursive: true }))
  await chmod(folder, 0o755)
  return folder
}

/** A folder for PATH with these programs. */
async function folderOf (t: Test, ...programs: string[]) {
  const folder = await openFolder(t)
  for (const program of programs) {
    const { stdout } = await run('sh', ['-c', 'command -v "$0"', program])
    await symlink(stdout.trim(), join(folder, program))
  }
  return folder
}

/** Pretends to be root, with the programs in this folder only. */
function becomeRoot (t: Intercepting, path = process.env.PATH) {
  t.intercept(process, 'getuid', { value: () => 0 })
  t.intercept(process, 'env', { value: { ...process.env, PATH: path } })
}

const starter = isRoot ? nobody : self

t.test('The server runs as its starter, or for root as nobody, with access to closed folders only', async t => {
  const folder = await openFolder(t)
  const open = join(folder, 'data')
  t.teardown(() => stopServer(open))
  for (const [home, ...paths] of [[await newData(t), parent], [open, folder, initdb]] as const) {
    const server = await start(home)
    t.equal((await stat(join(home, 'postgres'))).uid, starter.uid)
    t.strictSame(await privileges(home), { uid: starter.uid, capabilities: await grant(...paths) })
    await server.release()
  }
})

t.test('Root runs the server as the owner of its data, even in a closed folder', async t => {
  // An earlier version ran it as postgres.
  const owner = isRoot ? { uid: 101, gid: 102 } : self
  const folder = await openFolder(t)
  const home = join(folder, 'data')
  t.teardown(() => stopServer(home))
  await run('cp', ['-a', seed, home])
  await run('chown', ['-R', `${owner.uid}:${owner.gid}`, join(home, 'postgres'), join(home, 'postgres.log')])
  const other = await startElsewhere(t, home)
  t.strictSame(await privileges(home), { uid: owner.uid, capabilities: await grant(folder, initdb) })
  await other.kill()
  await used(other.url, 0)

  becomeRoot(t)
  await chmod(folder, 0o700)
  const server = await start(home)
  t.equal(server.url, other.url, 'the server that was left behind is joined')
  await server.release()
  t.equal(await serverPid(home), undefined)

  const next = await start(home)
  t.strictSame(await kept(next.url), KEPT)
  t.strictSame(await privileges(home), { uid: owner.uid, capabilities: await grant(folder, initdb) })
  await query(next.url, sql => sql`CREATE TABLE more AS SELECT 2 AS row`)
  await next.release()
  const { stdout } = await run('find', [join(home, 'postgres'), '!', '-uid', String(owner.uid)])
  t.equal(stdout, '', 'all files keep their owner')
})

t.test('In a container, where root has fewer capabilities, the server gets the remaining ones', async t => {
  const home = await newData(t)
  // The defaults of container engines.
  const left = '-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap'
  const other = await startElsewhere(t, home, isRoot ? ['setpriv', `--bounding-set=${left}`] : [])
  t.strictSame(await privileges(home), { uid: starter.uid, capabilities: isRoot ? DAC_OVERRIDE : 0 })
  await other.kill()
  await used(other.url, 0)
  const server = await start(home)
  t.equal(server.url, other.url)
  await server.release()
})

t.test('Other users run the server as themselves', async t => {
  t.intercept(process, 'getuid', { value: () => 1234 })
  t.strictSame(await findAccount(parent, initdb), { owner: { uid: 1234, gid: self.gid }, wrapper: [] })
})

t.test('If root cannot run the server, a StartupError of one line says what to do', async t => {
  const home = newHome()
  becomeRoot(t, await folderOf(t, 'id'))
  t.equal(await refusal(start(home)),
    'The embedded PostgreSQL refuses to run as root, and other users cannot run it in ' +
    `${home}. Start as an ordinary user, install setpriv (util-linux), move the project and DATA_DIR to folders that ` +
    'all users can enter, or set DATABASE_URL.')
  t.strictSame(await readdir(home), ['postgres-password'])
})

t.test('The log of the server is not written through a link', async t => {
  const home = await newData(t)
  const file = join(home, 'postgres.log')
  const target = join(home, 'target')
  await writeFile(target, 'of somebody else')
  await rm(file, { force: true })
  await symlink(target, file)
  const server = await start(home)
  t.equal(await readFile(target, 'utf8'), 'of somebody else')
  const log = await lstat(file)
  t.equal(log.isFile(), true)
  t.equal(log.uid, starter.uid)
  await server.release()
})

t.test('A log that cannot be written is named', async t => {
  const home = await newData(t)
  const file = join(home, 'postgres.log')
  await rm(file, { force: true })
  await mkdir(file)
  const message = String(await refusal(start(home)))
  t.ok(message.startsWith('Cannot start the embedded PostgreSQL: '), message)
  t.ok(message.endsWith(`(see ${file})`), message)
})

t.test('A server that does not stop is left as it is', async t => {
  const home = await newData(t)
  const log = fakeLog()
  const server = await start(home, log)
  const pid = (await serverPid(home))!
  process.kill(pid, 'SIGSTOP')
  t.teardown(() => process.kill(pid, 'SIGCONT'))
  await server.release()
  t.equal(log.lines.at(-1), 'The embedded PostgreSQL has not stopped within 5 s. It is left running.')
})
