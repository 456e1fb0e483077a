// The OWASP API security rules for the API description: https://github.com/stoplightio/spectral-owasp-ruleset
import { copyFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { type Judge, run, type Setting } from './judge.ts'

/** Installed by npx, because as dependencies they would be large. */
const VERSION = '6.16.3'
const RULESET_VERSION = '2.0.1'

const FILES = ['openapi.json', 'test/judges/spectral-ruleset.mjs']

interface Finding {
  code: string
  message: string
  path: string[]
}

/** Finds violations of the rules. spectral-ruleset.mjs says which ones do not apply, and why. */
export const spectral: Judge = {
  program: 'npx',
  install: 'it comes with Node.js',
  version: async () => `${VERSION} with the OWASP rules ${RULESET_VERSION}`,

  async run (setting: Setting) {
    for (const file of FILES) {
      await copyFile(
        fileURLToPath(new URL(file, import.meta.resolve('#package.json'))), join(setting.directory, basename(file)))
    }
    const { stdout, output } = await run(setting, 'npx', [
      '--yes', '--package', `@stoplight/spectral-cli@${VERSION}`,
      '--package', `@stoplight/spectral-owasp-ruleset@${RULESET_VERSION}`, '--',
      'spectral', 'lint', 'openapi.json', '--ruleset', 'spectral-ruleset.mjs',
      '--format', 'json', '--quiet',
    ])
    if (!stdout.startsWith('[')) throw new Error(`Spectral does not judge:\n${output}`)
    const findings = (JSON.parse(stdout) as Finding[])
      .map(({ code, message, path }) => `${code}: ${path.join('.')}: ${message}`)
    return { subject: 'openapi.json', findings }
  },
}
