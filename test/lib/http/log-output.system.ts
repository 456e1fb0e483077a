// Where the log goes: to files and pipes that take it late, or not at all.
import { once } from 'node:events'
import { write } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import t from 'tap'

import { LogOutput } from '#lib/http/log-output.js'
import { createDatabase } from '../../helper.ts'
import { freePort, isListening, start, startService } from '../../process.ts'

const METRICS_TOKEN = 'a-token-to-collect-metrics'

const line = (number: number, length = 250) => `${`{"line":${number}`.padEnd(length, ' ')}}\n`

t.test('Lines are written in order and whole, many at a time', async t => {
  const batches: string[] = []
  const output = new LogOutput((bytes, done) => {
    batches.push(bytes.toString())
    setTimeout(() => done(null), 1)
  }, () => {})
  const lines = Array.from({ length: 1000 }, (_line, number) => line(number, number === 500 ? 70_000 : 250))
  for (const line of lines) output.write(line)
  await promisify(output.flush.bind(output))()
  t.strictSame(batches.join(''), lines.join(''))
  t.ok(batches.length < 12, `${batches.length} batches`)
  t.strictSame(batches.filter(batch => batch.length > 65_536), [lines[500]], 'only a longer line makes a longer batch')
})

t.test('A disk that is full loses what no longer fits, and nothing else', async t => {
  const path = join(t.testdir(), 'log')
  const [full, file] = [await open('/dev/full', 'a'), await open(path, 'a')]
  t.teardown(() => Promise.all([full.close(), file.close()]))
  let target = file
  const said: string[] = []
  // A disk that fills up takes the beginning of a batch.
  const output = new LogOutput((bytes, done) => {
    const length = target === file && said.length === 0 ? Math.min(100, bytes.length) : bytes.length
    write(target.fd, bytes, 0, length, null, done)
    if (length === 100) target = full
  }, message => said.push(message))

  const lines = Array.from({ length: 17_000 }, (_line, number) => line(number, 1000))
  for (const line of lines) {
    output.write(line)
    if (said.length === 0) await sleep(1)
  }
  t.match(said, [/^The log cannot be written: ENOSPC: .*\. The service goes on/])
  t.ok(output.dropped > 200)
  target = file
  while (said.length < 2) await sleep(10)
  t.match(said, [/ENOSPC/, `The log is written again; ${output.dropped} lines were dropped`])
  output.write(line(17_000))
  await promisify(output.flush.bind(output))()
  t.equal(await readFile(path, 'utf8'), [...lines.slice(0, 17_000 - output.dropped), line(17_000)].join(''))
})

t.test('A reader that stands still costs the lines that wait for too long', async t => {
  const said: string[] = []
  const output = new LogOutput(() => {}, message => said.push(message))
  for (let number = 0; number < 17_000; number++) output.write(line(number, 1000))
  t.match(said, [/not read fast enough/])
  t.equal(output.dropped, 17_000 - Math.floor(16 * 1024 * 1024 / 1002))
  const before = performance.now()
  await promisify(output.flush.bind(output))()
  const took = performance.now() - before
  t.ok(took > 900 && took < 5000, `a flush gives up after ${took} ms`)
})

t.test('The service does without its log', async t => {
  t.test('on a full disk', async t => {
    const PORT = String(await freePort())
    const environment = { DATABASE_URL: await createDatabase(t), PORT, METRICS_TOKEN }
    const options = { stdout: '/dev/full', covered: true }
    const { child, output, ended } = start(t, 'dist/lib/server.js', environment, options)
    while (child.exitCode === null && !await isListening(Number(PORT))) await sleep(50)
    for (let requests = 0; requests < 50; requests++) {
      t.equal((await fetch(`http://127.0.0.1:${PORT}/clubs`)).status, 200)
    }
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
    const metrics = await (await fetch(`http://127.0.0.1:${PORT}/metrics`, { headers })).text()
    t.match(metrics, /^log_lines_dropped_total 0$/m)
    child.kill('SIGTERM')
    t.match(await ended, { code: 0, signal: null })
    t.equal(output.stderr.match(/^The log cannot be written: ENOSPC/gm)!.length, 1)
  })

  t.test('with a reader that is gone', async t => {
    const { child, url } = await startService(t, { DATABASE_URL: await createDatabase(t) })
    child.stdout!.destroy()
    for (let requests = 0; requests < 50; requests++) t.equal((await fetch(`${url}/clubs`)).status, 200)
    child.kill('SIGTERM')
    const [code] = await once(child, 'exit')
    t.equal(code, 0)
  })

  t.test('with a reader that stands still', async t => {
    const { child, url } = await startService(t, { DATABASE_URL: await createDatabase(t) })
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
