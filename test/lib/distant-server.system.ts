import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import t from 'tap'

import { createDatabase } from '../helper.ts'
import { freePort, run, start } from '../process.ts'
import { RUN_DIR } from '../run.ts'

/** Has `db.example.org` two addresses, of which the second refuses. */
const prelude = `
  import dns from 'node:dns'
  const { lookup } = dns
  dns.lookup = (host, options, done) => host === 'db.example.org'
    ? done(null, [{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }])
    : lookup(host, options, done)
`

/** Forwards connections. While it is stopped, the kernel drops connections beyond its short backlog. */
const FORWARDER = `
  import { connect, createServer } from 'node:net'
  const [from, port, host] = process.argv.slice(2)
  createServer(client => {
    const server = connect(port, host)
    for (const socket of [client, server]) socket.on('error', () => {})
    client.pipe(server).pipe(client)
  }).listen({ port: from, host: '127.0.0.1', backlog: 1 }, () => console.log('listening'))
`

/** How many connections to this port have no answer yet. */
async function waiting (port: number) {
  const end = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map(line => line.trim().split(/ +/))
  return lines.filter(([, , remote, state]) => remote?.endsWith(end) && state === '02').length
}

t.test('A server that accepts after a second is reached though its other address does not answer', {
  skip: process.platform !== 'linux' && 'only Linux drops what a backlog does not take',
}, async t => {
  const address = new URL(await createDatabase())
  const port = await freePort()
  const script = join(RUN_DIR, 'forwarder.mjs')
  await writeFile(script, FORWARDER)
  const args = [String(port), address.port || '5432', address.hostname]
  const { child } = start(t, resolve(script), {}, { args })
  await once(child.stdout, 'data')
  const DATABASE_URL = Object.assign(new URL(address), { host: `db.example.org:${port}` }).href

  child.kill('SIGSTOP')
  const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  t.teardown(() => { for (const filler of fillers) filler.destroy() })
  await sleep(200)
  const before = await waiting(port)
  const outcome = run(t, 'dist/lib/cli.js', { DATABASE_URL }, { args: ['migrate'], prelude, covered: true })
  while (await waiting(port) <= before) await sleep(20)
  // More than Node waits by default. Its next packet comes a second after the first.
  await sleep(400)
  child.kill('SIGCONT')
  t.strictSame(await outcome, { code: 0, signal: null, stdout: 'Nothing to do\n', stderr: '' })
})
