import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

import { variables } from '#lib/config/config.js'
import { shutdownTimeouts } from '#lib/config/timeout.js'
import { testConfig } from '../helper.ts'
import { isInstalled } from '../process.ts'
import t from '../suite.ts'

const UNIT = await readFile('examples/systemd/community-platform@.service', 'utf8')

t.test('The unit sets variables that exist, and waits longer than a stop may take', async t => {
  const settings = [...UNIT.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = '']) => line.split(' '))
  t.ok(settings.length > 0)
  for (const setting of settings) {
    const [name = '', value = ''] = setting.split('=')
    t.hasProp(variables.properties, name.replace(/_FILE$/, ''))
    if (name.endsWith('_FILE')) t.match(UNIT, `LoadCredential=${value.replace('%d/', '')}:`)
  }
  // As docs/run/deploy.md recommends for several instances.
  const { total } = shutdownTimeouts(testConfig({ STOP_DELAY: '3' }))
  t.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(UNIT)?.[1]) > total)
})

t.test('systemd accepts the unit', async t => {
  if (!await isInstalled('systemd-analyze')) return t.pass('skipped: it needs systemd-analyze', { skip: true })
  // The folder of this project exists.
  const unit = UNIT.replaceAll('/opt/community-platform', resolve('.'))
  const file = join(t.testdir({ 'community-platform@.service': unit }), 'community-platform@.service')
  const { stdout, stderr } = await promisify(execFile)('systemd-analyze', ['verify', file])
  t.equal(stdout + stderr, '')
})
