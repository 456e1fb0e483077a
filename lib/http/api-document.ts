import { isDeepStrictEqual } from 'node:util'

import { FORMATS } from '../values/formats.ts'

/** Any object within a document. */
interface Node { [key: string]: any }

/**
 * Finishes a document from @fastify/swagger: converts types and formats to those of OpenAPI, lists errors with a named
 * schema once, and sorts paths and components by name.
 */
export function finishDocument ({ paths, components, ...document }: Node) {
  const finished = converted({ paths: sorted(paths), schemas: sorted(components.schemas) })
  const responses = shareErrors(finished.paths)
  return {
    ...document,
    paths: finished.paths,
    components: { ...components, responses: sorted(responses), schemas: finished.schemas },
  }
}

/** Converts all schemas within an object. Examples stay as they are. */
function converted (node: Node): Node {
  if (typeof node !== 'object' || node === null) return node
  if (Array.isArray(node)) return node.map(converted)
  const { type, format, enum: words, ...others } = Object.fromEntries(Object.entries(node)
    .map(([key, value]) => [key, key === 'examples' ? value : converted(value)]))
  const known = type === 'integer' ? 'int64' : format in FORMATS ? FORMATS[format]!.openapi : format
  const one = words?.length === 1 ? { const: words[0] } : { enum: words }
  return { ...words ? { type: 'string', ...one } : type && { type }, ...known && { format: known }, ...others }
}

/**
 * Moves each error that consists of a named schema to the returned responses, under the same name, and the response
 * without a body to validated requests. Throws if two responses with the same name differ.
 */
function shareErrors (paths: Node) {
  const shared: Node = {}
  for (const { responses } of Object.values(paths).flatMap(path => Object.values<Node>(path))) {
    for (const [status, response] of Object.entries<Node>(responses)) {
      const { $ref } = response.content?.['application/json']?.schema ?? {}
      const name = status === '304' ? 'NotModified' : $ref?.split('/').at(-1)
      if (status.startsWith('2') || !name) continue
      shared[name] ??= response
      if (!isDeepStrictEqual(shared[name], response)) throw new Error(`Two different responses have the name ${name}`)
      responses[status] = { $ref: `#/components/responses/${name}` }
    }
  }
  return shared
}

function sorted (node: Node) {
  return Object.fromEntries(Object.entries(node).sort(([one], [other]) => one < other ? -1 : 1))
}
