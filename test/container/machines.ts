// Runs the commands of the documents on a new Debian machine with systemd, as root and in their order, as an operator
// would: `npm run test:container`. Three things are different: the repository is a copy of this repository, and the
// mail server and the certificate authority are on the machine.
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import t from 'tap'

import { commandsOf } from '../documents.ts'
import { CERTIFICATES, MACHINE_IMAGE, startEngine, until } from './engine.ts'

const exec = promisify(execFile)

const { buildOptions, context, podman, succeed } = await startEngine(t, ['machine'])

/** Files for the machine, at /given: the repository with two versions, and scripts. */
const given = join(context, 'given')
await mkdir(given)
const repository = join(given, 'repository')
await exec('git', ['clone', '--quiet', '.', repository])
const git = (...args: string[]) => exec('git', [
  '-C', repository, '-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args,
])
await git('checkout', '--quiet', '-b', 'new')
await writeFile(join(repository, 'migrations/29991231000000000_new.sql'),
  '-- Up Migration\nCREATE TABLE new ();\n\n-- Down Migration\nDROP TABLE new;\n')
await git('add', '.')
await git('commit', '--quiet', '--message', 'Add a table')
await git('checkout', '--quiet', '-')

// Options of a build are also options of a container, except for the first.
const volumes = buildOptions.slice(buildOptions.indexOf('--volume'))
await succeed(
  'run', '--detach', '--name', 'machine', '--privileged', '--systemd', 'always', ...volumes,
  '--volume', `${given}:/given:ro`, '--add-host', 'api.example.org:127.0.0.1', MACHINE_IMAGE, '/sbin/init',
  // systemd 257 needs this where the machine that runs the test has control groups of version 1.
  'SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1'
)
t.teardown(() => podman('rm', '--force', '--time', '0', 'machine'))

const REPOSITORY = 'https://github.com/your-union/community-platform'
const PASSWORD = 'correct horse battery'

/** Takes emails at the port and prints them. It uses a package that the tests of the service install. */
const MAIL_SERVER = `const { SMTPServer } = require('smtp-server')
  new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS'] }).listen(2525)`

/** The root certificate of Caddy's own authority, which takes the place of Let's Encrypt. */
const ROOT = '/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt'

/** Runs commands on the machine in a shell that stops at the first error. Returns their output. */
async function run (commands: string[], user = 'root') {
  const lines = [
    'set -eux', 'cd', 'curl () { command curl --fail "$@"; }',
    'export DATABASE_URL_FILE=/etc/community-platform/database-url', ...commands,
  ]
  await writeFile(join(given, 'script'), lines.join('\n'))
  return succeed('exec', 'machine', 'runuser', '--login', user, '--command', 'bash /given/script 2>&1')
}

/** Replaces a part of a command, which must be there. */
function replace (text: string, part: RegExp, by: string) {
  if (!part.test(text)) throw new Error(`${part} is not in ${text}`)
  return text.replace(part, by)
}

async function isUp () {
  const { stdout } = await podman('exec', 'machine', 'systemctl', 'is-system-running')
  return /running|degraded/.test(stdout)
}

/** Waits until systemd has started everything. */
async function waitForSystemd () {
  await until(isUp)
  // Podman makes mounts private. systemd needs shared mounts to pass the secrets to the service.
  await succeed('exec', 'machine', 'mount', '--make-rshared', '/')
}

t.test('The machine starts', async t => {
  await waitForSystemd()
  t.ok(await isUp())
})

const page = await commandsOf('docs/start/server.md')
const at = (text: string) => {
  const index = page.findIndex(block => block.includes(text))
  if (index < 0) throw new Error(`No block contains ${text}`)
  return index
}

t.test('docs/start/server.md leads to a service with HTTPS, an admin, email and a backup', async t => {
  const blocks = [...page]
  const change = (text: string, part: RegExp, by: string) => { blocks[at(text)] = replace(blocks[at(text)]!, part, by) }
  // What nobody else may reach, or a person types
  change('git clone', /^/, `git config --system url.file:///given/repository.insteadOf ${REPOSITORY}
git config --system safe.directory '*'
`)
  change('SMTP_URL', /SMTP_URL=.*/, 'SMTP_URL=smtp://127.0.0.1:2525')
  change('Caddyfile', /'END'\n/, "'END'\n{\n\tlocal_certs\n}\n")
  change('Caddyfile', /(?=^curl)/m, `until [ -e ${ROOT} ]; do sleep 1; done
cp ${ROOT} /usr/local/share/ca-certificates/caddy.crt
update-ca-certificates
`)
  change('user -- create', /^.*$/m, `script --quiet --return --command '$&' /dev/null < <(
sleep 4; echo ${PASSWORD}; sleep 2; echo ${PASSWORD}; sleep 3)`)
  change('auth/login', /your password/, PASSWORD)
  change('email -- test', /^/, `systemd-run --working-directory=/opt/community-platform node --eval "${MAIL_SERVER}"
sleep 2
`)

  const output = await run(blocks.slice(0, at('platform-1.1.0')))
  t.match(output, '{"message":"Ready"}')
  t.match(output, /"token":"/)
  t.match(output, /^sent +\S+ +\S+ +test /m)
  t.match(output, /community-\d.dump/)
})

t.test('docs/run/upgrade.md installs a version, and goes back', async t => {
  await git('merge', '--quiet', 'new')
  const output = await run(['cd /opt/community-platform', ...await commandsOf('docs/run/upgrade.md')])
  t.match(output, 'pending  29991231000000000_new')
  t.match(output, 'applied  29991231000000000_new')
  t.equal(await succeed('exec', 'machine', 'readlink', '/opt/community-platform'), '/opt/community-platform-1.0.0')
  await run(['cd /opt/community-platform-1.1.0', 'npm run migrate -- down', 'rm -r /opt/community-platform-1.1.0'])
})

t.test('docs/start/server.md updates the service, and a restart of the machine brings it back', async t => {
  t.match(await run(page.slice(at('platform-1.1.0'))), 'applied  29991231000000000_new')
  await succeed('restart', '--time', '60', 'machine')
  await waitForSystemd()
  await succeed('exec', 'machine', 'systemctl', 'restart', 'community-platform@3000')
  const ready = ['exec', 'machine', 'curl', '--fail', 'https://api.example.org/readyz']
  await until(async () => (await podman(...ready)).code === 0)
  const lines = (await run(['ss --listening --tcp --numeric --no-header'])).split('\n')
  const ports = lines.filter(line => /^LISTEN/.test(line)).map(line => line.split(/\s+/)[3]!)
    .filter(address => !/^(127\.|\[::1\])/.test(address))
  t.strictSame([...new Set(ports.map(address => address.split(':').at(-1)))].sort(), ['443', '80'])
})

t.test('The commands with systemd in docs/run/deploy.md run several instances', async t => {
  const sections = ['With systemd', 'Several instances', 'Rolling restarts']
  const blocks = (await Promise.all(sections.map(heading => commandsOf('docs/run/deploy.md', heading)))).flat()
  t.match(await run(['cd /opt/community-platform', ...blocks]), '{"message":"Ready"}')
})

t.test('The commands of README.md start the service, the demo community and the example app', async t => {
  const [start, seed, example] = (await commandsOf('README.md')).join('').trim().split('\n')
    .map(line => line.replace(/ +#.*/, ''))
  await run(['useradd --create-home ada'])
  const output = await run([
    `git clone ${REPOSITORY} service`, 'cd service', 'unset DATABASE_URL_FILE', 'export PORT=4000',
    // npm is configured for root only. Each job gets a process group, so that Ctrl-C ends it.
    `if [ -e ${CERTIFICATES} ]; then export npm_config_cafile=${CERTIFICATES}; fi`, 'set -m',
    `(${start}) &`,
    'until command curl --silent --fail http://localhost:4000/readyz; do sleep 1; done',
    seed!,
    'command curl http://localhost:4000/events?limit=1',
    'kill -INT -- -$!', 'wait || true',
    `(${example}) &`,
    'until command curl --silent --fail http://localhost:5173/; do sleep 1; done',
    'kill -INT -- -$!', 'wait || true',
  ], 'ada')
  t.match(output, 'student@demo.example.org')
})
