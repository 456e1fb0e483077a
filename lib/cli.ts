import database from './cli/database.ts'
import email from './cli/email.ts'
import migrate from './cli/migrate.ts'
import openapi from './cli/openapi.ts'
import seed from './cli/seed.ts'
import user from './cli/user.ts'
import { StartupError } from './config/startup-error.ts'
import { runMain } from './startup.ts'

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = { database, email, migrate, openapi, seed, user }

const USAGE = `Usage: node dist/lib/cli.js COMMAND …

COMMAND is database, email, migrate, openapi, seed or user. COMMAND --help explains it.`

// console.log ignores errors, so a full disk would cut off an export without a word.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  process.exitCode = 1
  // A program such as `head` has read enough.
  if (code !== 'EPIPE') console.error(`Cannot write the output: ${message}`)
})

await runMain(async () => {
  const [name, ...args] = process.argv.slice(2)
  if (name === '--help') return console.log(USAGE)
  const command = COMMANDS[name ?? '']
  if (!command) throw new StartupError(`Give a command: ${Object.keys(COMMANDS).join(', ')}`)
  await command(args)
})
