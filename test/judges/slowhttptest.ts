// Slow clients: https://github.com/shekyan/slowhttptest
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { findVersion, type Judge, run } from './judge.ts'
import { startTarget } from './target.ts'

/** The duration of each attack in seconds, longer than REQUEST_TIMEOUT and IDLE_TIMEOUT. */
const SECONDS = 90

/** Additional events, for a list of 7 MB. */
const EVENTS = 10_000

interface Attack {
  connections: number
  path: string
  options: string[]
}

const ATTACKS: Record<string, Attack> = {
  'slow headers': { connections: 1000, path: '/events', options: ['-H'] },
  'slow bodies': { connections: 1000, path: '/auth/login', options: ['-B', '-t', 'POST', '-f', 'application/json'] },
  // More would only fill the kernel's buffers: 2 MB for each connection, some 2 GB in all.
  'slow reading': {
    connections: 200, path: `/events?limit=${EVENTS}`, options: ['-X', '-w', '10', '-y', '20', '-z', '5'],
  },
}

/** The service must respond to the probes of slowhttptest in each second of each attack. */
export const slowhttptest: Judge = {
  program: 'slowhttptest',
  install: 'apt-get install slowhttptest',
  version: async setting => findVersion((await run(setting, 'slowhttptest', ['-h'])).output),

  async run (setting) {
    const { url } = await startTarget(setting.scope, setting.directory, {}, [
      '--clubs', '10', '--events', String(EVENTS),
    ])
    const findings: string[] = []
    for (const [attack, { connections, path, options }] of Object.entries(ATTACKS)) {
      const args = [
        ...options, '-u', url + path, '-c', connections, '-r', connections / 4, '-l', SECONDS, '-i', 5, '-p', 3,
        '-g', '-o', 'slow',
      ]
      const { output } = await run(setting, 'slowhttptest', args.map(String))
      const seconds = (await readFile(join(setting.directory, 'slow.csv'), 'utf8').catch(() => '')).trim().split('\n')
        .slice(1).map(line => line.split(',').map(Number))
      // Closed, pending, connected; then 0 or the number of connections.
      const away = seconds.filter(([, , , , available]) => !available)
      if (away.length > 0) findings.push(`${attack}: not available in ${away.length} of ${seconds.length} seconds`)
      if (!seconds.some(([, , , connected]) => connected! > connections / 2)) {
        findings.push(`${attack}: there was no attack\n${output.slice(-500)}`)
      }
      console.log(`  ${attack}: available in ${seconds.length - away.length} of ${seconds.length} seconds, ` +
        `${seconds.at(-1)?.[1]} connections closed`)
    }
    const subject = Object.entries(ATTACKS).map(([attack, { connections }]) => `${attack} (${connections} connections)`)
    return { subject: subject.join(', '), findings }
  },
}
