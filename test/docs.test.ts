// Checks that links, commands, variables and files in the documents exist.
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'

import { variables } from '#lib/config/config.js'
import { assertComplete } from './assertions.ts'
import { type Block, blocksOf, DOCUMENTS, isSettings, RUN_BY } from './documents.ts'
import t from './suite.ts'

/** Folders that are not part of the project. */
const IGNORED = ['.data', '.git', '.tap', 'dist', 'node_modules', 'secrets']

/** The paths of all files and folders, relative to the root of the project. */
async function listPaths (folder = '.'): Promise<string[]> {
  const entries = (await readdir(folder, { withFileTypes: true })).filter(({ name }) => !IGNORED.includes(name))
  const paths = await Promise.all(entries.map(async entry => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? [path, ...await listPaths(path)] : [path]
  }))
  return paths.flat()
}

const read = (path: string) => readFile(path, 'utf8')
const matches = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, group = '']) => group)

const paths = new Set(['.', ...await listPaths()])
const documents = new Map<string, string>()
for (const path of paths) if (path.endsWith('.md')) documents.set(path, await read(path))
const sources = [...paths].filter(path => /(\.([cm]?[jt]s|lua|ya?ml)|^Dockerfile|\/(run|start))$/.test(path) &&
  !/^(client\/schema\.d\.ts$|test\/docs\.test\.ts$|docs\/)/.test(path))
const code = new Map(await Promise.all(sources.map(async path => [path, await read(path)] as const)))
const allCode = [...code.values()].join('\n')
const { scripts } = JSON.parse(await read('package.json')) as { scripts: Record<string, string> }

/** The text outside code blocks. */
const withoutBlocks = (text: string) => text.replaceAll(/^```.*?^```$/gms, '')
const spansOf = (text: string) => matches(withoutBlocks(text), /`([^`]+)`/g)

/** The anchors that GitHub generates for the headings of a document. */
function anchorsOf (text: string) {
  const headings = matches(withoutBlocks(text), /^#{1,6} (.+)$/gm)
  return headings.map(heading => heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-'))
}

for (const [path, text] of documents) {
  t.test(`${path} has valid links`, async t => {
    const prose = withoutBlocks(text).replaceAll(/`[^`]+`/g, '')
    const targets = [...matches(prose, /\]\(([^)\s]+)\)/g), ...matches(prose, /^\[[^\]]+\]: (\S+)$/gm)]
    for (const target of targets.filter(target => !/^(https?|mailto):/.test(target))) {
      const [file = '', anchor] = target.split('#')
      const linked = file ? normalize(join(dirname(path), file)).replace(/\/$/, '') : path
      t.ok(paths.has(linked), target)
      if (anchor) t.ok(anchorsOf(documents.get(linked) ?? '').includes(anchor), target)
    }
  })

  t.test(`${path} names existing files`, async t => {
    for (const span of spansOf(text)) {
      const file = span.replace(/\/$/, '')
      if (/^[\w.-]+(\/[\w.-]+)+$/.test(file) && paths.has(file.split('/')[0]!)) t.ok(paths.has(file), span)
    }
  })

  t.test(`${path} names existing commands`, async t => {
    for (const line of text.split('\n')) {
      const named = matches(line, /npm run (?:--silent )?([\w:]+)/g)
      for (const name of named) t.ok(name in scripts, `npm run ${name}`)
      const source = named.map(sourceOf).join('\n')
      // The first word is a subcommand, unless it is an option.
      const args = matches(line, /(?<=[ `])-- ([^`\n#|"]+)/g).flatMap(args => matches(args, /(?:^|--)([a-z][a-z-]+)/g))
      for (const arg of source ? args : []) t.match(source, new RegExp(`\\b${arg}\\b`), `${arg} of ${named.join()}`)
    }
    for (const name of matches(text, /node dist\/lib\/cli\.js (\w+)/g)) t.ok(paths.has(`lib/cli/${name}.ts`), name)
  })

  // The changelog also names removed items.
  if (path !== 'CHANGELOG.md') {
    t.test(`${path} names existing variables`, async t => {
      const blocks = matches(text, /^```(.*?)^```$/gms)
      const names = matches([...spansOf(text), ...blocks].join('\n'), /\b([A-Z\d]+_[A-Z\d_]+)\b/g)
      for (const name of new Set(names)) {
        // lib/config/config.ts quotes the names of variables that a file may have.
        const [, mounted] = /^(.+)_FILE$/.exec(name) ?? []
        t.ok(new RegExp(mounted ? `\\b${name}\\b|'${mounted}'` : `\\b${name}\\b`).test(allCode), name)
      }
    })
  }
}

/** The code with the options of a command: its file in lib/cli, or the folder of its script. */
function sourceOf (script: string) {
  const [, main, command] = /node dist\/([\w/]+)\.js(?: (\w+))?$/.exec(scripts[script] ?? '') ?? []
  if (!main) return ''
  if (command) return code.get(`lib/cli/${command}.ts`)
  return [...code].flatMap(([path, text]) => dirname(path) === dirname(main) ? [text] : []).join('\n')
}

t.test('The code names existing documents', async t => {
  for (const [path, text] of code) {
    for (const name of matches(text, /\b(docs\/[\w/-]+\.md|[A-Z]+\.md)\b/g)) t.ok(paths.has(name), `${path}: ${name}`)
    // A message that names a section, such as docs/run/deploy.md, "With systemd"
    for (const [, name = '', heading] of text.matchAll(/(docs\/[\w/-]+\.md), "([^"]+)"/g)) {
      t.match(documents.get(name), `# ${heading}\n`, `${path}: ${heading}`)
    }
  }
})

t.test('docs/run/troubleshooting.md names existing messages', async t => {
  const text = documents.get('docs/run/troubleshooting.md')!
  const symptoms = spansOf(matches(text, /^\| ([^|]+) \|/gm).join('\n'))
  // These are messages of other programs.
  const messages = symptoms.filter(span => / /.test(span) && !/^(npm|server version mismatch)/.test(span))
  t.ok(messages.length > 10)
  for (const message of messages) {
    for (const part of message.split(/…|NAME/).filter(Boolean)) t.ok(allCode.includes(part), message)
  }
})

/** The rows of all tables in a text, by their first cell without backticks. */
function rowsOf (text: string) {
  const rows = matches(text, /^\| (.+) \|$/gm).map(row => row.split(' | ').map(cell => cell.replaceAll('`', '')))
  return new Map(rows.map(([first = '', ...others]) => [first, others]))
}

interface Described { description?: string }

/** Languages whose samples test/docs.system.ts checks in all documents. */
const LANGUAGES = ['csv', 'haproxy', 'html', 'js', 'json', 'python', 'sql', 'ts', 'yaml']

/** Tells whether a block shows no command, or a test runs or checks it. */
function isTested (block: Block) {
  const { document, heading, language, text } = block
  if (block.isExample || language === 'mermaid' || LANGUAGES.includes(language) || isSettings(block)) return true
  // Commands of contributors: the tests above check their names and options.
  const isContributed = /^(CONTRIBUTING|docs\/(contribute|design)\/)/.test(document)
  if (isContributed && /^((npm|npx|\.ci\/run)\b.*\n)+$/.test(text)) return true
  return language === 'sh' && (document in RUN_BY || `${document}#${heading}` in RUN_BY)
}

t.test('Each command and each sample is run or checked by a test, or marked as an example', async t => {
  for (const document of DOCUMENTS) {
    for (const block of await blocksOf(document)) t.ok(isTested(block), `${document}: ${block.text.split('\n', 1)[0]}`)
  }
  for (const [key, runner] of Object.entries(RUN_BY)) {
    const [document = '', heading] = key.split('#')
    t.ok(paths.has(runner), runner)
    t.ok((await blocksOf(document)).some(block => heading === undefined || block.heading === heading), key)
  }
})

t.test('The documents name faults and benchmarks that exist', t => {
  for (const [path, text] of documents) {
    for (const [, script = '', pattern = ''] of text.matchAll(/npm run ([\w:]+) -- .*--only '?(\^?\w[^'`\n]*)/g)) {
      t.match(sourceOf(script), pattern.replace('^', "'"), `${path}: ${pattern}`)
    }
  }
  t.end()
})

t.test('The messages that documents quote for operators are in the code', t => {
  // Strings that continue on the next line
  const joined = allCode.replaceAll(/['`] \+\n\s+['`]/g, '')
  const symptoms = matches(documents.get('docs/run/troubleshooting.md')!, /^\| (.+?) \|/gm).join('\n')
  const inEmail = spansOf(documents.get('docs/run/email.md')!).filter(span => span.includes('…'))
  const quoted = [...spansOf(symptoms), ...inEmail]
  const messages = quoted.filter(span => / /.test(span) && !/^npm |^http|=|^server version mismatch$/.test(span))
  t.ok(messages.length > 8)
  for (const message of messages) {
    const parts = message.split(/…|NAME|1 s\. |[()]/).map(part => part.trim()).filter(part => part.length > 2)
    for (const part of parts) t.ok(joined.includes(part), `${part}: ${message}`)
  }
  t.end()
})

t.test('The description of each operation in docs/api/errors.md says when it returns 500', async t => {
  const { paths } = JSON.parse(await read('openapi.json')) as { paths: Record<string, Record<string, Described>> }
  const [, section = ''] = documents.get('docs/api/errors.md')!.split('## Why some operations return 500\n')
  const cells = [...rowsOf(section.split('\n## ')[0]!).keys()].slice(1)
  const listed = cells.flatMap(cell => cell.split(', '))
  t.ok(listed.length > 15)
  for (const operation of listed) {
    const [method = '', path = ''] = operation.split(' ')
    const { description } = paths[path.replaceAll(/:(\w+)/g, '{$1}')]![method.toLowerCase()]!
    t.match(description, /Returns 500/, operation)
  }
  const described = Object.entries(paths).flatMap(([path, operations]) => Object.entries(operations)
    .filter(([, { description }]) => /Returns 500/.test(description ?? ''))
    .map(([method]) => `${method.toUpperCase()} ${path.replaceAll(/[{](\w+)[}]/g, ':$1')}`))
  assertComplete(t, listed, described, 'docs/api/errors.md')
})

t.test('docs/run/configuration.md has every variable, with its values and its default', async t => {
  const rows = rowsOf(documents.get('docs/run/configuration.md')!)
  for (const [name, { description, default: value = 'not set' }] of Object.entries(variables.properties)) {
    t.strictSame(rows.get(name)?.slice(1), [description, String(value)], name)
  }
  t.equal([...rows.keys()].filter(name => /^[A-Z_]+$/.test(name)).length, Object.keys(variables.properties).length)
})

t.test('Every metric and every event of the audit trail is described', t => {
  const names = matches(code.get('plugins/metrics.ts')!, /(?:name: |\w+\()'(\w+_\w+)'/g)
  for (const name of names) t.match(documents.get('docs/run/operate.md'), `\`${name}\``)
  const [, events = ''] = /AuditEvent =(.*?)\n\n/s.exec(code.get('lib/http/audit.ts')!)!
  for (const event of matches(events, /'([\w-]+)'/g)) t.match(documents.get('SECURITY.md'), `\`${event}\``)
  t.end()
})

t.test('README.md has the figures of the latest benchmark', async t => {
  const { goals } = JSON.parse(await read('bench/results.json')) as { goals: Record<string, { measured: string }[]> }
  const [, speed = ''] = documents.get('README.md')!.split('## Speed\n')
  const rows = [...rowsOf(speed.split('\n## ')[0]!)].slice(2)
  t.ok(rows.length > 0)
  for (const [goal, figures] of rows) t.strictSame(figures, goals[goal]?.map(({ measured }) => measured), goal)
})

t.test('docs/api/errors.md has every message of an error except the failures of operations, and no others', async t => {
  interface Response { description: string, content?: object, $ref?: string }
  const { paths, components } = JSON.parse(await read('openapi.json')) as {
    paths: Record<string, Record<string, { responses?: Record<string, Response> }>>
    components: { responses: Record<string, Response> }
  }
  const messages = new Set(['Not found', 'Request body is too large'])
  /** Messages of a 500 that has a single message. */
  const failures = new Set<string>()
  for (const operation of Object.values(paths).flatMap(path => Object.values(path))) {
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      if (Number(status) < 400) continue
      const shared = components.responses[response.$ref?.split('/').at(-1) ?? '']
      const { content, description } = shared ?? response
      if (!content) continue
      const texts = matches(description, /`([^`]+)`/g)
      for (const text of texts) (status === '500' && texts.length === 1 ? failures : messages).add(text)
    }
  }
  const [, listed = ''] = documents.get('docs/api/errors.md')!.split('## All messages')
  const cells = matches(listed, /^\| \d+ \| (.+?) \|/gm).join()
  const entries = [...new Set(matches(cells, /`([^`]+)`/g))].filter(text => messages.has(text) || !failures.has(text))
  assertComplete(t, entries, [...messages], 'the tables in docs/api/errors.md')
})
