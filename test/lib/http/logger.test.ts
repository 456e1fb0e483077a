import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { PassThrough, Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

import { createLogger, logStream, pathOf } from '#lib/http/logger.js'
import { build, inject, make } from '../../helper.ts'
import t from '../../suite.ts'

/** A stream that collects its output, as a terminal or a file. */
function fakeOutput ({ isTTY = false } = {}) {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY })
  let text = ''
  stream.on('data', chunk => { text += chunk })
  return {
    stream: stream as unknown as NodeJS.WriteStream,
    text: () => text,
    lines: () => text.split('\n').filter(Boolean).map(line => JSON.parse(line)),
  }
}

/** Logs an object, and returns the parsed line. */
function logged (fields: object) {
  const output = fakeOutput()
  const log = createLogger('info', output.stream)
  log.info(fields, 'text')
  const [line] = output.lines()
  return line
}

t.test('The path of a request is logged without email addresses', async t => {
  t.equal(pathOf('/users/ada@example.org/role?x=y'), '/users/[redacted]/role')
  t.equal(pathOf('/users/ada%40example.org'), '/users/[redacted]')
})

t.test('On a terminal, lines are coloured and readable', async t => {
  const output = fakeOutput({ isTTY: true })
  const log = createLogger('info', logStream(output.stream))
  log.info({ password: 'hunter2', step: 1 }, 'first')
  const escape = String.fromCharCode(27)
  t.ok(output.text().includes(`${escape}[32mINFO${escape}[39m`))
  // eslint-disable-next-line no-control-regex
  const plain = output.text().replace(/\u001b\[\d+m/g, '')
  t.match(plain, /^\[\d\d:\d\d:\d\d\] INFO: first\n( {4}.*\n)+$/)
  t.match(plain, /password: "\[redacted\]"\n {4}step: 1\n/)
  t.notMatch(plain, /hunter2|pid|hostname/)
})

t.test('createLogger detects whether standard output is a terminal', async t => {
  t.intercept(process.stdout, 'isTTY', { value: true })
  const written = t.capture(process.stdout, 'write', () => true)
  createLogger('info').info('first')
  t.match(written().map(({ args }) => String(args[0])).join(''), /INFO.*first/)
})

t.test('Only a line feed ends a line, whatever a client has sent', async t => {
  const text = 'one\u2028two\u2029three\u0085four\r\nfive'
  const output = fakeOutput()
  const log = createLogger('info', output.stream)
  log.child({ bound: text }).info({ [text]: text, err: new Error(text) }, text)
  t.equal(output.text().split(/[\r\n\u0085\u2028\u2029]/).length, 2)
  t.match(output.lines(), [{ bound: text, [text]: text, err: { message: text }, msg: text }])
})

function * failing () {
  yield 'a part'
  throw new Error('The next part is missing')
}

function * endless () {
  for (;;) yield Buffer.alloc(1000)
}

t.test('Secrets are redacted', async t => {
  for (const name of ['password', 'token', 'idToken', 'secret', 'authorization', 'cookie', 'set-cookie']) {
    const secret = { [name]: 'hunter2', other: 'kept' }
    const redacted = { [name]: '[redacted]', other: 'kept' }
    const { user, headers, response, ...line } = logged({
      ...secret, user: secret, headers: secret, response: { headers: { ...secret, accept: '*/*' }, status: 200 },
    })
    t.equal(line[name], '[redacted]', name)
    t.equal(line.other, 'kept')
    t.strictSame(user, redacted, `${name} in an object`)
    t.strictSame(headers, redacted, `${name} in headers`)
    t.strictSame(response, { headers: { ...redacted, accept: '*/*' }, status: 200 }, `${name} in an object's headers`)
  }
  const { headers } = logged({ headers: { 'set-cookie': ['a=hunter2', 'b=hunter3'] } })
  t.strictSame(headers, { 'set-cookie': '[redacted]' })
})

t.test('An error is logged with its cause, without the row that PostgreSQL quotes', async t => {
  const cause = Object.assign(new Error('the cause'), { code: '23514', detail: 'Failing row contains (hunter2).' })
  const error = Object.assign(new Error('the error', { cause }), { code: '23505', detail: 'Key (a)=(hunter2) exists.' })
  const { err, ...line } = logged({ err: error })
  t.match(err, { type: 'Error', code: '23505', detail: '[redacted]' })
  t.match(err.stack, /^Error: the error\n[^]*\ncaused by: Error: the cause\n/)
  t.notMatch(JSON.stringify([err, line]), /hunter2/)
})

t.test('The service logs', async t => {
  const output = fakeOutput()
  const app = await build(t, {}, createLogger('trace', output.stream))
  const { DATABASE_URL } = app.config

  t.test('each request once, when it is done, without its query and headers', async t => {
    for (const path of ['/auth/me', '/nowhere', '/auth/google/callback', '/clubs']) {
      const before = output.lines().length
      const response = await inject(app, 'GET', `${path}?code=hunter2&state=hunter3`, undefined,
        { authorization: 'Bearer hunter4', cookie: 'session=hunter5' })
      const line = output.lines().slice(before).at(-1)
      t.strictSame(Object.keys(line),
        ['level', 'time', 'pid', 'hostname', 'reqId', 'method', 'path', 'status', 'responseTime', 'msg'])
      t.match(line, { level: 30, method: 'GET', path, status: response.statusCode, msg: 'request completed' })
      t.equal(line.reqId, response.headers['x-request-id'])
      t.ok(line.responseTime > 0 && line.responseTime < 60_000)
      t.notMatch(output.text(), /hunter/)
    }
    t.equal(output.lines().filter(({ path }) => path === '/clubs').length, 1)
  })

  t.test('probes only when they fail', async t => {
    const before = output.lines().length
    await inject(app, 'GET', '/livez')
    t.equal(output.lines().length, before)
  })

  t.test('the request id in each line about a request, at any level and from child loggers', async t => {
    const { app: other } = await make(t, { DATABASE_URL }, createLogger('trace', output.stream))
    other.get('/log', async ({ log }) => {
      for (const level of ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const) {
        log[level]({ token: 'hunter2' }, `a line at ${level}`)
      }
      log.child({ step: 2 }).info('a line of a child')
      return {}
    })
    const before = output.lines().length
    await inject(other, 'GET', '/log', undefined, { 'x-request-id': 'request-1' })
    const lines = output.lines().slice(before).filter(({ msg }) => msg.startsWith('a line'))
    t.strictSame(lines.map(({ level }) => level), [60, 50, 40, 30, 20, 10, 30])
    for (const line of lines) t.equal(line.reqId, 'request-1')
    t.notMatch(JSON.stringify(lines), /hunter/)
    t.equal(lines.at(-1).step, 2)
  })

  t.test('a request whose client has gone', async t => {
    const { app: other } = await make(t, { DATABASE_URL }, createLogger('info', output.stream))
    const pause = new EventEmitter()
    other.get('/slow', async () => {
      pause.emit('begun')
      await once(pause, 'over')
    })
    other.get('/begun', async (_request, reply) => reply.send(Readable.from(endless())))
    other.post('/upload', { onRequest: async () => { pause.emit('uploading') } }, async () => {})
    other.get('/quiet', { logLevel: 'warn' }, async () => { await once(pause, 'over') })
    const url = await other.listen({ port: 0 })
    const line = (path: string) => output.lines().find(line => line.path === path)
    await t.rejects(fetch(`${url}/quiet`, { signal: AbortSignal.timeout(50) }))
    const client = new AbortController()
    const begun = once(pause, 'begun')
    const slow = fetch(`${url}/slow`, { signal: client.signal })
    await begun
    client.abort()
    await t.rejects(slow)
    await (await fetch(`${url}/begun`, { headers: { authorization: 'Bearer hunter2' } })).body!.cancel()
    const upload = connect(Number(new URL(url).port))
    const uploading = once(pause, 'uploading')
    upload.write('POST /upload HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{')
    await uploading
    upload.destroy()
    while (!line('/begun') || !line('/slow') || !line('/upload')) await sleep(10)
    t.match(line('/slow'), { level: 30, reqId: String, status: 499, responseTime: Number, msg: 'request aborted' })
    t.match(line('/begun'), { status: 200, msg: 'request aborted' })
    t.match(line('/upload'), { status: 499, msg: 'request aborted' })
    pause.emit('over')
    await other.close()
    for (const path of ['/upload', '/begun']) {
      t.strictSame(output.lines().filter(({ reqId }) => reqId === line(path).reqId), [line(path)], 'no other line')
    }
    t.equal(line('/quiet'), undefined)
  })

  for (const [level, METRICS_TOKEN] of [['info', ''], ['warn', ''], ['info', 'a-token-of-the-metrics']] as const) {
    t.test(`a response that fails while it is sent, at ${level}${METRICS_TOKEN && ' with metrics'}`, async t => {
      const { app: other } = await make(t, { DATABASE_URL, METRICS_TOKEN }, createLogger(level, output.stream))
      const path = `/broken-${level}${METRICS_TOKEN.length}`
      other.register(async other => {
        other.get(path, async (_request, reply) => {
          reply.hijack()
          reply.raw.emit('error', new Error('broken off'))
          reply.raw.end()
        })
      })
      await fetch(`${await other.listen({ port: 0 })}${path}`)
      const [line, ...others] = output.lines().filter(line => line.path === path)
      t.match(line, { level: 50, err: { message: 'broken off' }, msg: 'request errored' })
      t.strictSame(others, [], 'no other line')
    })
  }

  t.test('a request and a response without headers and bodies', async t => {
    const before = output.lines().length
    const response = { statusCode: 200, raw: { req: { rawHeaders: ['authorization', 'Bearer hunter2'] } } }
    app.log.info({ req: { method: 'GET', url: `/feeds/me/${'x'.repeat(43)}.ics?code=hunter2` }, res: response }, 'both')
    t.match(output.lines()[before], {
      req: { method: 'GET', path: '/feeds/me/[redacted].ics' }, res: { status: 200 }, msg: 'both',
    })
    t.notMatch(JSON.stringify(output.lines().slice(before)), /hunter2/)
  })

  t.test('an error in the middle of a response', async t => {
    const { app: other } = await make(t, { DATABASE_URL }, createLogger('info', output.stream))
    other.get('/failing', async (_request, reply) => reply.send(Readable.from(failing())))
    const response = await fetch(`${await other.listen({ port: 0 })}/failing`)
    await t.rejects(response.text())
    const { reqId } = output.lines().find(line => line.path === '/failing')
    const lines = output.lines().filter(line => line.reqId === reqId)
    t.match(lines.find(({ level }) => level === 40), { err: { message: 'The next part is missing' } })
  })

  t.test('an unexpected error in full, without secrets', async t => {
    const before = output.lines().length
    await app.sql.unsafe(`
      CREATE FUNCTION fail () RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE 'the disk is broken' USING ERRCODE = 'XX001', DETAIL = NEW.password; END $$;
      CREATE TRIGGER fail BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION fail();
    `)
    const response = await inject(app, 'POST', '/auth/register',
      { email: 'ada@example.org', password: 'hunter2 and more', firstName: 'Ada', lastName: 'Lovelace' })
    t.equal(response.statusCode, 500)
    const lines = output.lines().slice(before)
    const { err } = lines.find(({ level }) => level === 50)
    t.match(err, { type: 'PostgresError', code: 'XX001', detail: '[redacted]' })
    t.match(err.stack, /the disk is broken\n +at /)
    t.notMatch(JSON.stringify(lines), /hunter2|argon2id/)
  })
})
