// The verdict of systemd on the unit: `npm run test:container`.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

import t from 'tap'

import { variables } from '#lib/config.js'
import { shutdownTimeouts } from '#lib/shutdown.js'
import { testConfig } from '../helper.ts'

const exec = promisify(execFile)

const UNIT = await readFile('examples/systemd/community-platform@.service', 'utf8')

const installed = await exec('systemd-analyze', ['--version']).then(() => true, () => false)
const skip = installed ? false : 'systemd-analyze is not installed: sudo apt-get install systemd'

/** The unit with the project in place of its folder: systemd wants to see the program. */
async function writeUnit () {
  const folder = await mkdtemp(join(tmpdir(), 'community-unit-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const path = join(folder, 'community-platform@3001.service')
  await writeFile(path, UNIT.replaceAll('/opt/community-platform', resolve('.')))
  return path
}

t.test('systemd accepts the unit', { skip }, async t => {
  const { stdout, stderr } = await exec('systemd-analyze', ['verify', await writeUnit()])
  t.equal(stdout + stderr, '')
})

t.test('systemd finds it well sandboxed, as the document says', { skip }, async t => {
  const { stdout } = await exec('systemd-analyze', ['security', '--offline=true', '--no-pager', await writeUnit()])
  const [, level] = /Overall exposure level for \S+: ([\d.]+)/.exec(stdout)!
  t.ok(Number(level) <= 1.5)
  t.match(await readFile('docs/run/deploy.md', 'utf8'), `exposure level of ${level}`)
})

t.test('It sets variables that exist, and waits longer than a stop may take', async t => {
  const settings = [...UNIT.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = '']) => line.split(' '))
  for (const setting of settings) {
    const [name = '', value = ''] = setting.split('=')
    t.hasProp(variables.properties, name.replace(/_FILE$/, ''))
    if (name.endsWith('_FILE')) t.match(UNIT, `LoadCredential=${value.replace('%d/', '')}:`)
  }
  // As docs/run/deploy.md has it for several instances.
  const { total } = shutdownTimeouts(testConfig({ STOP_DELAY: '3' }))
  t.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(UNIT)?.[1]) > total)
})
