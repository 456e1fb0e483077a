import database from './cli/database.ts'
import email from './cli/email.ts'
import migrate from './cli/migrate.ts'
import openapi from './cli/openapi.ts'
import seed from './cli/seed.ts'
import user from './cli/user.ts'
import { runMain, StartupError } from './startup.ts'

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = { database, email, migrate, openapi, seed, user }

const USAGE = `Usage: node dist/lib/cli.js COMMAND …

COMMAND is database, email, migrate, openapi, seed or user. COMMAND --help explains it.`

await runMain(async () => {
  const [name, ...args] = process.argv.slice(2)
  if (name === '--help') return console.log(USAGE)
  const command = COMMANDS[name ?? '']
  if (!command) throw new StartupError(`Give a command: ${Object.keys(COMMANDS).join(', ')}`)
  await command(args)
})
