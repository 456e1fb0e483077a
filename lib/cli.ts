import database from './commands/database.ts'
import migrate from './commands/migrate.ts'
import openapi from './commands/openapi.ts'
import seed from './commands/seed.ts'
import user from './commands/user.ts'
import { runMain } from './main.ts'
import { StartupError } from './startup-error.ts'

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = { database, migrate, openapi, seed, user }

const USAGE = `Usage: node dist/lib/cli.js COMMAND …

COMMAND is database, migrate, openapi, seed or user, each of which tells more by COMMAND --help.`

await runMain(async () => {
  const [name, ...args] = process.argv.slice(2)
  if (name === '--help') return console.log(USAGE)
  const command = COMMANDS[name ?? '']
  if (!command) throw new StartupError(`Name a command: ${Object.keys(COMMANDS).join(' or ')}`)
  await command(args)
})
