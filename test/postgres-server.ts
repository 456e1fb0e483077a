// PostgreSQL servers for a single test, which the server of the test run must not be used for.
import { execFile } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { appendFile, chown, mkdir, readFile, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { findAccount, findBinaries, runAs, type ServerAccount } from '#lib/database/embedded-postgres.js'
import { dataDir, freePort, postgresOf, remaining } from './process.ts'
import type { Teardown } from './scope.ts'

const run = promisify(execFile)

/** The server's programs: POSTGRES_BIN, or the programs of the embedded server. */
const findBin = async () => process.env.POSTGRES_BIN ?? dirname((await findBinaries()).initdb)

/** Only the test commits, so that ids of snapshots are predictable. The data need not survive a power failure. */
const SETTINGS = `
  listen_addresses = '127.0.0.1'
  unix_socket_directories = ''
  shared_buffers = 16MB
  max_prepared_transactions = 10
  autovacuum = off
  bgwriter_lru_maxpages = 0
  fsync = off
`

/** A PostgreSQL server with its own data; created stopped. */
export class PostgresServer {
  readonly port: number
  readonly home: string
  readonly #account: ServerAccount
  readonly #bin: string

  private constructor (home: string, port: number, account: ServerAccount, bin: string) {
    this.port = port
    this.home = home
    this.#account = account
    this.#bin = bin
  }

  /** Creates a server from the programs in `bin`, removed when the test ends. */
  static async create (t: Teardown, parent?: string, bin?: string) {
    const server = await PostgresServer.#make(t, parent, bin ?? await findBin())
    await server.#run('initdb', '--pgdata', server.data, '--username', 'postgres', '--auth', 'trust',
      '--encoding', 'UTF8', '--locale', 'C', '--wal-segsize', '1', '--no-sync')
    await server.configure(SETTINGS)
    return server
  }

  static async #make (t: Teardown, parent: string | undefined, bin: string) {
    const home = dataDir(t, parent)
    await mkdir(home)
    const account = await findAccount(home, join(bin, 'initdb'))
    await chown(home, account.owner.uid, account.owner.gid)
    return new PostgresServer(home, await freePort(), account, bin)
  }

  /** The folder of its data. */
  get data () {
    return join(this.home, 'postgres')
  }

  url (database = 'postgres', port = this.port) {
    return `postgres://postgres@127.0.0.1:${port}/${database}`
  }

  async start () {
    const file = join(this.home, 'log')
    const read = () => readFile(file, 'utf8').catch(() => '')
    for (let tries = 1; ; tries++) {
      const { length } = await read()
      try {
        return await this.#control('start', '--log', file, '--options', `-p ${this.port}`)
      } catch (error) {
        const log = (await read()).slice(length)
        // A killed server may not be reaped yet, and a connection to elsewhere may have got the port while it was away,
        // which it keeps for a minute after.
        if (!/Address already in use|lock file .* already exists/.test(log) || tries > 140) {
          throw new Error(`PostgreSQL does not start:\n${log.slice(-1000)}`, { cause: error })
        }
        await sleep(500)
      }
    }
  }

  async stop (mode: 'fast' | 'immediate') {
    await this.#control('stop', '--mode', mode)
  }

  async restart (mode: 'fast' | 'immediate') {
    await this.#control('restart', '--mode', mode, '--log', join(this.home, 'log'))
  }

  /** Sends a signal to the postmaster and all its children. */
  async signal (signal: NodeJS.Signals) {
    const [server] = await postgresOf(this.home)
    // A stopped postmaster forks no more children.
    process.kill(server!, 'SIGSTOP')
    const pids = await postgresOf(this.home)
    // Some may have exited already.
    await run('kill', ['-s', signal.slice('SIG'.length), ...pids.map(String)]).catch(() => {})
    if (signal === 'SIGKILL') await remaining(pids)
  }

  /** The log of the server so far. */
  log () {
    return readFile(join(this.home, 'log'), 'utf8')
  }

  /** Promotes a standby. */
  async promote () {
    await this.#control('promote')
  }

  /** Creates a standby that follows this server, which must be stopped. */
  async standby (t: Teardown, parent?: string) {
    const standby = await PostgresServer.#make(t, parent, this.#bin)
    await run('cp', ['-a', this.data, standby.data])
    await standby.configure(`
      primary_conninfo = 'host=127.0.0.1 port=${this.port} user=postgres'
      wal_retrieve_retry_interval = '100ms'
    `)
    await writeFile(join(standby.data, 'standby.signal'), '')
    return standby
  }

  /** Gives a file to the user that the server runs as. */
  async own (path: string) {
    await chown(path, this.#account.owner.uid, this.#account.owner.gid)
  }

  /** Adds settings, which count from the next start on. */
  async configure (settings: string) {
    await appendFile(join(this.data, 'postgresql.conf'), settings)
  }

  async #control (command: string, ...args: string[]) {
    await this.#run('pg_ctl', command, '--pgdata', this.data, '--wait', '--silent', ...args)
  }

  #run (program: string, ...args: string[]) {
    return this.run(join(this.#bin, program), ...args)
  }

  /** Runs a program as the account of the server. */
  run (program: string, ...args: string[]) {
    return runAs(this.#account, program, args, this.home)
  }
}

/** A TCP proxy whose target can be replaced, like a pooler. Closed when the test ends. */
export async function makeProxy (t: Teardown, target: number, host = '127.0.0.1') {
  const sockets = new Set<Socket>()
  const events = new EventEmitter()
  let held: Promise<unknown> | undefined
  let swallowing = false
  const server = createServer(client => {
    if (swallowing) return forget(client)
    const upstream = connect(target, host)
    for (const [socket, other] of [[client, upstream], [upstream, client]] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
    client.pipe(upstream)
    upstream.on('data', async data => {
      if (held) events.emit('arrive')
      await held
      client.write(data)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    cut()
  })
  return { port: (server.address() as AddressInfo).port, cut, switchTo, hold, swallow }

  /** Resets all connections. */
  function cut () {
    for (const socket of sockets) socket.resetAndDestroy()
  }

  function switchTo (port: number) {
    target = port
    cut()
  }

  /** Holds back the data of the server. `arrived` resolves when some has arrived. */
  function hold () {
    const arrived = once(events, 'arrive')
    held = once(events, 'release')
    return { arrived, release }
  }

  function release () {
    held = undefined
    events.emit('release')
  }

  /**
   * Drops all data, as a broken network does, until the returned function is called. Connections of that time stay
   * dead, and are not closed.
   */
  function swallow () {
    swallowing = true
    for (const socket of sockets) forget(socket)
    return () => { swallowing = false }
  }

  function forget (socket: Socket) {
    sockets.add(socket)
    socket.unpipe().removeAllListeners('data').on('error', () => {}).resume()
  }
}
