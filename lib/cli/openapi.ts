import { readFile, writeFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'

import { loadConfig } from '../config/config.ts'
import { StartupError } from '../config/startup-error.ts'
import { parseOptions } from './command-line.ts'

const USAGE = `Usage: npm run openapi [-- [FILE] [--check]]

Writes the API description (OpenAPI 3.1) to FILE. The default is openapi.json in the project's folder. You can
run it without a database.

  --check   fail if FILE is out of date, instead of writing it`

/** The description under version control, next to package.json. */
const FILE = fileURLToPath(new URL('openapi.json', import.meta.resolve('#package.json')))

/** `npm run openapi`: writes the API description, or checks that it is up to date. */
export default async function openapiCommand (args: string[]) {
  const options = { help: { type: 'boolean' }, check: { type: 'boolean' } } as const
  const { operands: [file = FILE], values } = parseOptions(args, options, 1)
  if (values.help) return console.log(USAGE)

  const document = `${withShortLines(JSON.stringify(await describe(), null, 2))}\n`
  const name = relative('.', file)
  if (!values.check) {
    await writeFile(file, document)
    return console.log(`Wrote ${name}`)
  }
  const written = await readFile(file, 'utf8').catch(() => undefined)
  if (written !== document) throw new StartupError(`${name} is out of date: run "npm run openapi"`)
  console.log(`${name} is up to date`)
}

/** Puts an innermost object or array on one line, unless the line would be long. Half of the file was indentation. */
const withShortLines = (json: string) =>
  json.replace(/(?<=[[{])\n[^[\]{}]{1,120}\n *(?=[\]}])/g, lines => lines.trim().replace(/\n */g, ' '))

async function describe () {
  // Loaded here because other commands do not need the service.
  const { buildApp } = await import('../app.ts')
  // Without this secret, the service would create one in DATA_DIR.
  const config = { ...loadConfig(), JWT_SECRET: 'unused', PUBLIC_URL: undefined }
  const app = buildApp(config, undefined, { describeOnly: true })
  try {
    await app.ready()
    return app.swagger()
  } finally {
    await app.close()
  }
}
