// SQL injection: https://sqlmap.org
import { setTimeout as sleep } from 'node:timers/promises'

import { findVersion, type Judge, run } from './judge.ts'
import { type Operation, startOperations } from './target.ts'

/** The output of sqlmap when it has found nothing. */
const NOTHING = 'all tested parameters do not appear to be injectable'

/** PostgreSQL logs errors of class 42 for SQL that it cannot parse or resolve. */
const SQL_ERROR = /"code":"42...".*/

/** Tries to inject SQL through every parameter of every operation. */
export const sqlmap: Judge = {
  program: 'sqlmap',
  install: 'apt-get install sqlmap',
  version: async setting => findVersion((await run(setting, 'sqlmap', ['--version', '--disable-coloring'])).stdout),

  async run (setting) {
    const { url, operations, log } = await startOperations(setting.scope, setting.directory)
    const findings: string[] = []
    let parameters = 0
    for (const operation of operations) {
      const { output } = await run(setting, 'sqlmap', argumentsFor(url, operation))
      const tested = [...output.matchAll(/parameter '(.*)' does not seem to be injectable/g)].length
      parameters += tested
      console.log(`  ${operation.name}: ${tested} parameters`)
      if (!output.includes(NOTHING) || tested < countParameters(operation)) {
        findings.push(`${operation.name}:\n${output.slice(-2000)}`)
      }
    }
    // The log is written a moment after the response.
    await sleep(1000)
    const error = SQL_ERROR.exec(await log())
    if (error) findings.push(`An error of PostgreSQL: ${error[0].slice(0, 500)}`)
    return { subject: `${parameters} parameters of ${operations.length} operations`, findings }
  },
}

const countParameters = ({ inPath, inQuery, inHeader, body = {} }: Operation) =>
  [inPath, inQuery, inHeader, body].flatMap(Object.keys).length

/** The star marks where sqlmap inserts its payload. */
function argumentsFor (url: string, { method, path, inPath, inQuery, inHeader, headers, body }: Operation) {
  const mark = (values: object) => Object.entries(values).map(([name, value]) => [name, `${value}*`])
  const fill = path.replace(/\{(\w+)\}/g, (_, name) => `${encodeURIComponent(inPath[name]!)}*`)
  const query = mark(inQuery).map(([name, value]) => `${name}=${encodeURIComponent(value!)}`).join('&')
  const lines = [...Object.entries(headers), ...mark(inHeader), ...body ? [['content-type', 'application/json']] : []]
  return [
    '--url', `${url}${fill}${query && `?${query}`}`,
    '--method', method,
    '--headers', lines.map(line => line.join(': ')).join('\n'),
    ...body ? ['--data', JSON.stringify(Object.fromEntries(mark(body)))] : [],
    '--dbms', 'PostgreSQL', '--level', '2', '--risk', '3',
    // Rejected requests have gone through validation, too.
    '--ignore-code', '*',
    '--batch', '--ignore-stdin', '--flush-session', '--disable-coloring', '--output-dir', 'sqlmap',
  ]
}
