// A network whose packets have 1,500 bytes. On loopback the kernel takes a megabyte of a response at once, so that a
// client looks fast that is slow. As a program this file is the client's end: it relays connections from there.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import type { Teardown } from './scope.ts'

const PROGRAM = fileURLToPath(import.meta.url)

/** A way from a client to a service in this process that listens on all addresses. */
export interface Network {
  name: string
  /** Connects to a port. Where there is a rate, in bytes per millisecond, the responses come no faster. */
  connect (port: number, rate?: number): Socket
}

const loopback: Network = { name: 'loopback', connect: port => connect(port, '127.0.0.1') }

/** How many were made by this process. */
let made = 0

/** The networks that tests run on: loopback, and one with packets of 1,500 bytes where that can be made. */
export async function networks (t: Teardown & { comment (text: string): void }): Promise<Network[]> {
  const name = `ct-${process.pid}-${made++}`
  const ip = (...args: string[]) => promisify(execFile)('ip', args)
  try {
    await ip('netns', 'add', name)
  } catch (error) {
    t.comment(`Only on loopback: no network namespace can be made here (${(error as Error).message.trim()})`)
    return [loopback]
  }
  // A network of four addresses of those for benchmarks (RFC 2544).
  const prefix = `198.${18 + (made & 1)}.${process.pid >> 6 & 255}.`
  const first = (process.pid & 63) << 2
  await ip('link', 'add', name, 'mtu', '1500', 'type', 'veth', 'peer', 'name', 'eth0', 'mtu', '1500', 'netns', name)
  await ip('address', 'add', `${prefix}${first + 1}/30`, 'dev', name)
  await ip('link', 'set', name, 'up')
  await ip('-n', name, 'address', 'add', `${prefix}${first + 2}/30`, 'dev', 'eth0')
  await ip('-n', name, 'link', 'set', 'eth0', 'up')
  // A client's kernel takes 64 KB ahead of its client.
  await ip('netns', 'exec', name, 'sh', '-c', 'echo 4096 65536 65536 > /proc/sys/net/ipv4/tcp_rmem')
  // Sockets of the file system are reached from every namespace.
  const path = `/tmp/${name}.sock`
  const args = ['netns', 'exec', name, process.execPath, PROGRAM, path, `${prefix}${first + 1}`]
  const relay = spawn('ip', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    relay.kill()
    await once(relay, 'exit')
    // The link goes with its namespace.
    await ip('netns', 'delete', name)
    await rm(path, { force: true })
  })
  await once(relay.stdout, 'data')
  return [loopback, {
    name: 'packets of 1,500 bytes',
    connect (port, rate = Infinity) {
      const socket = connect(path)
      socket.write(`${port} ${rate}\n`)
      return socket
    },
  }]
}

/** Relays connections from a socket of the file system, whose first line is the port and the rate, to an address. */
function relay (path: string, host: string) {
  createServer({ allowHalfOpen: true }, near => {
    near.once('readable', () => {
      const first: Buffer = near.read()
      const end = first.indexOf('\n')
      near.unshift(first.subarray(end + 1))
      const [port, rate] = String(first.subarray(0, end)).split(' ').map(Number)
      const far = connect({ port: port!, host, allowHalfOpen: true })
      const slowly = new Transform({
        transform (chunk, _encoding, done) { setTimeout(done, chunk.length / rate!, null, chunk) },
      })
      near.on('error', () => {}).on('close', () => far.destroy()).pipe(far)
      far.on('error', () => near.destroy()).pipe(slowly).pipe(near)
    })
  }).listen(path, () => console.log('ready'))
}

if (process.argv[1] === PROGRAM) relay(process.argv[2]!, process.argv[3]!)
