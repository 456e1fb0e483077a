import { readFile } from 'node:fs/promises'

import { variables } from '#lib/config.js'
import { shutdownTimeouts } from '#lib/shutdown.js'
import { testConfig } from '../helper.ts'
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
