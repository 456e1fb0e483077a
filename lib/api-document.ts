import { isDeepStrictEqual } from 'node:util'

import { FORMATS } from './formats.ts'

/** Any object within a document. */
interface Node { [key: string]: any }

/**
 * Finishes a document from @fastify/swagger. Moves each schema with a title, and each error that several operations
 * share, to the components, and replaces it by a reference. Sorts paths and components by name. Throws if different
 * components have the same name.
 */
export function finishDocument ({ paths, components, ...document }: Node) {
  const schemas: Node = {}
  const finish = (node: Node): Node => mapValues(node, (value, key) => {
    if (key === 'schema') return share(value)
    return key === 'examples' || typeof value !== 'object' || value === null ? value : finish(value)
  })

  function share ({ title, ...schema }: Node): Node {
    const finished = finishSchema(schema)
    return title ? refer('schemas', schemas, title, finished) : finished
  }

  function finishSchema ({ format, properties, items, anyOf, ...schema }: Node): Node {
    const known = schema.type === 'integer' ? 'int64' : format in FORMATS ? FORMATS[format]!.openapi : format
    return {
      ...schema.enum && { type: 'string' },
      ...schema,
      ...known && { format: known },
      ...properties && { properties: mapValues(properties, share) },
      ...items && { items: share(items) },
      ...anyOf && { anyOf: anyOf.map(share) },
    }
  }

  const finished = finish(sorted(paths))
  const responses = shareErrors(finished)
  return {
    ...document, paths: finished, components: { ...components, responses: sorted(responses), schemas: sorted(schemas) },
  }
}

/** Moves errors that several operations share to the returned components. */
function shareErrors (paths: Node) {
  const shared: Node = {}
  const errors = Object.values(paths).flatMap(path => Object.values<Node>(path))
    .flatMap(({ responses = {} }) => Object.keys(responses)
      .map(status => ({ responses, status, text: JSON.stringify(responses[status]) })))
    .filter(({ status }) => !status.startsWith('2'))
  const counts = new Map<string, number>()
  for (const { text } of errors) counts.set(text, (counts.get(text) ?? 0) + 1)
  for (const { responses, status, text } of errors) {
    if (counts.get(text)! < 2) continue
    const response = responses[status]
    responses[status] = refer('responses', shared, nameOf(response), response)
  }
  return shared
}

/** Adds an object to the components. Returns a reference to it. */
function refer (kind: string, components: Node, name: string, node: Node): Node {
  components[name] ??= node
  if (!isDeepStrictEqual(components[name], node)) throw new Error(`Two different ${kind} have the name ${name}`)
  return { $ref: `#/components/${kind}/${name}` }
}

/**
 * Returns the name of a response: the name of its schema, or its description as one word such as `EventNotFound`,
 * without a suffix such as `, please try again later`.
 */
function nameOf ({ content, description }: Node): string {
  const { $ref } = content?.['application/json']?.schema ?? {}
  if ($ref) return $ref.split('/').at(-1)
  const [sentence = '']: string[] = description.replace(/, please[^`]*/g, '').split(/[.:]/)
  return sentence.replace(/\w+/g, word => word[0]!.toUpperCase() + word.slice(1)).replace(/\W/g, '')
}

function mapValues (node: Node, change: (value: any, key: string) => unknown): Node {
  if (Array.isArray(node)) return node.map((value, index) => change(value, String(index)))
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, change(value, key)]))
}

function sorted (node: Node) {
  return Object.fromEntries(Object.entries(node).sort(([one], [other]) => one < other ? -1 : 1))
}
