// Where the log goes: to files and pipes that take it late, or not at all.
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import fs, { constants, write } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import t, { type Test } from 'tap'

import { openLog } from '#lib/http/log-output.js'
import { createDatabase } from '../../helper.ts'
import { freePort, isListening, start, startService } from '../../process.ts'

const METRICS_TOKEN = 'a-token-to-collect-metrics'

const line = (number: number, length = 250) => `${`{"line":${number}`.padEnd(length, ' ')}}\n`

/** A pipe without a reader. */
async function makePipe (t: Test) {
  const path = join(t.testdir({}), 'pipe')
  await promisify(execFile)('mkfifo', [path])
  const file = await open(path, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => file.close())
  return { path, fd: file.fd }
}

t.test('Lines are written in order and whole', async t => {
  const path = join(t.testdir(), 'log')
  const file = await open(path, 'a')
  t.teardown(() => file.close())
  const output = openLog(file.fd, t.fail)
  const lines = Array.from({ length: 1000 }, (_line, number) => line(number, number === 500 ? 70_000 : 250))
  for (const line of lines) output.write(line)
  await promisify(output.flush)()
  t.strictSame(await readFile(path, 'utf8'), lines.join(''))
})

t.test('A full disk loses only the lines that do not fit', async t => {
  const path = join(t.testdir(), 'log')
  const [full, file] = [await open('/dev/full', 'a'), await open(path, 'a')]
  t.teardown(() => Promise.all([full.close(), file.close()]))
  const said: string[] = []
  // A disk that fills up takes the beginning of a batch.
  let isFull = false
  t.intercept(fs, 'write', {
    value: (_fd: number, batch: string | Buffer, ...rest: unknown[]) => {
      const bytes = Buffer.from(batch)
      const taken = said.length === 0 && bytes.length > 100 ? bytes.subarray(0, 100) : bytes
      write((isFull ? full : file).fd, taken, rest.at(-1) as () => void)
      if (taken !== bytes) isFull = true
    },
  })
  const output = openLog(file.fd, message => said.push(message))

  const lines = Array.from({ length: 17_000 }, (_line, number) => line(number, 1000))
  for (const line of lines) {
    output.write(line)
    if (said.length === 0) await sleep(1)
  }
  t.match(said, [/^Cannot write the log: ENOSPC: .*\. The service continues/])
  t.ok(output.dropped > 200)
  // The last attempt fails before.
  await sleep(100)
  isFull = false
  await promisify(output.flush)()
  // The flush gives up on a slow disk. The lines are written later.
  while (said.length < 2) await sleep(20)
  t.match(said, [/ENOSPC/, `Writing the log works again. ${output.dropped} lines were dropped.`])
  output.write(line(17_000))
  await promisify(output.flush)()
  t.equal(await readFile(path, 'utf8'), [...lines.slice(0, 17_000 - output.dropped), line(17_000)].join(''))
})

t.test('A pipe without a reader loses lines that wait too long', async t => {
  const pipe = await makePipe(t)
  const said: string[] = []
  const output = openLog(pipe.fd, message => said.push(message))
  for (let number = 0; number < 17_000; number++) output.write(line(number, 1000))
  t.match(said, [/not read fast enough/])
  t.equal(output.dropped, 17_000 - Math.floor(16 * 1024 * 1024 / 1002))
  // A timer counts from the beginning of the turn, in which all lines were written.
  await setImmediate()
  const before = performance.now()
  await promisify(output.flush)()
  const took = performance.now() - before
  t.ok(took > 900 && took < 5000, `a flush gives up after ${took} ms`)
})

t.test('The service does without its log', async t => {
  const { path: pipe } = await makePipe(t)
  for (const [stdout, reason] of [['/dev/full', /^Cannot write the log: ENOSPC/gm], [pipe]] as const) {
    t.test(reason ? 'on a full disk' : 'with a pipe that nobody reads', async t => {
      const PORT = String(await freePort())
      const environment = { DATABASE_URL: await createDatabase(), PORT, METRICS_TOKEN }
      const { child, output, ended } = start(t, 'dist/lib/server.js', environment, { stdout, covered: true })
      while (child.exitCode === null && !await isListening(Number(PORT))) await sleep(50)
      // More than a pipe takes
      const headers = { 'x-request-id': 'x'.repeat(128), authorization: `Bearer ${METRICS_TOKEN}` }
      for (let requests = 0; requests < 300; requests++) {
        t.equal((await fetch(`http://127.0.0.1:${PORT}/clubs`, { headers })).status, 200)
      }
      const metrics = await (await fetch(`http://127.0.0.1:${PORT}/metrics`, { headers })).text()
      t.match(metrics, /^log_lines_dropped_total 0$/m)
      child.kill('SIGTERM')
      t.match(await ended, { code: 0, signal: null })
      t.equal(output.stderr.match(reason ?? /./g)?.length, reason && 1)
    })
  }

  t.test('with a reader that is gone', async t => {
    const { child, url } = await startService(t, { DATABASE_URL: await createDatabase() })
    child.stdout!.destroy()
    for (let requests = 0; requests < 50; requests++) t.equal((await fetch(`${url}/clubs`)).status, 200)
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    t.equal(code, 0)
  })

  t.test('with a reader that stands still', async t => {
    const { child, url } = await startService(t, { DATABASE_URL: await createDatabase() })
    child.stdout!.pause()
    for (let requests = 0; requests < 100; requests++) {
      const headers = { 'x-request-id': 'x'.repeat(128) }
      const responses = await Promise.all(Array.from({ length: 20 }, () => fetch(`${url}/clubs`, { headers })))
      for (const response of responses) t.equal(response.status, 200)
    }
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    t.equal(code, 0)
    child.stdout!.resume()
  })
})
