// The code blocks of the documents. A fence with the word "example" marks a block that no test runs: output, or
// commands for machines that a test does not have.
import { readdir, readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'

export interface Block {
  document: string
  /** The heading above the block. */
  heading: string
  language: string
  isExample: boolean
  text: string
}

/** The tests that run the commands of a document, or of the section with this heading. */
export const RUN_BY: Record<string, string> = {
  'README.md': 'test/container/machines.ts',
  'docs/api/client.md': 'test/docs.system.ts',
  'docs/api/introduction.md': 'test/docs.system.ts',
  'docs/api/pictures.md': 'test/docs.system.ts',
  'docs/api/sign-in.md': 'test/docs.system.ts',
  'docs/run/accounts.md': 'test/docs.system.ts',
  'docs/run/deploy.md#With systemd': 'test/container/machines.ts',
  'docs/run/deploy.md#With Docker Compose': 'test/container/containers.ts',
  'docs/run/deploy.md#Several instances': 'test/container/machines.ts',
  'docs/run/deploy.md#Rolling restarts': 'test/container/machines.ts',
  'docs/run/email.md': 'test/docs.system.ts',
  'docs/run/operate.md#Start and stop': 'test/docs.system.ts',
  'docs/run/operate.md#Back up and restore': 'test/lib/database/backup.test.ts',
  'docs/run/operate.md#Copy the embedded database': 'test/lib/cli/database.system.ts',
  'docs/run/operate.md#Restore the data alone': 'test/lib/database/backup.test.ts',
  'docs/run/privacy.md': 'test/docs.system.ts',
  'docs/run/upgrade.md': 'test/container/machines.ts',
  'docs/start/app.md': 'test/docs.system.ts',
  'docs/start/server.md': 'test/container/machines.ts',
}

/**
 * A shell that stops at the first error. It runs commands of the service without npm, which needs the folder of the
 * project. The service runs already.
 */
export const SHELL = `set -eu
npm () {
  if [ "$1" = ci ] || [ "$1" = start ]; then return; fi
  shift
  if [ "$1" = --silent ]; then shift; fi
  command=$1
  shift
  if [ "\${1-}" = -- ]; then shift; fi
  node '${resolve('dist/lib/cli.js')}' "$command" "$@"
}
`

/** All documents with code blocks for readers. */
export const DOCUMENTS = [
  'README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'client/README.md', ...await documentsIn('docs'),
]

async function documentsIn (folder: string) {
  const names = await readdir(folder, { recursive: true })
  return names.filter(name => name.endsWith('.md')).map(name => join(folder, name)).sort()
}

/** Returns the code blocks of a document in their order. */
export async function blocksOf (document: string): Promise<Block[]> {
  const text = await readFile(document, 'utf8')
  const blocks: Block[] = []
  let heading = ''
  for (const [, title, info = '', body = ''] of text.matchAll(/^#+ (.+)$|^```(.*)\n([^]*?)^```$/gm)) {
    if (title === undefined) {
      const [language = '', ...words] = info.split(' ')
      blocks.push({ document, heading, language, isExample: words.includes('example'), text: body })
    } else {
      heading = title
    }
  }
  return blocks
}

/** Tells whether a block only sets variables of the environment. */
export const isSettings = ({ language, text }: Block) => language === 'sh' && /^(\w+=.*\n)+$/.test(text)

/** Returns the commands of a document, or of its section with this heading, that RUN_BY promises to run. */
export async function commandsOf (document: string, heading?: string): Promise<string[]> {
  const blocks = (await blocksOf(document)).filter(block => block.language === 'sh' && !block.isExample)
  return blocks.filter(block => !isSettings(block) && (heading === undefined || block.heading === heading))
    .map(({ text }) => text)
}
