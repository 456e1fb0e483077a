import { isDeepStrictEqual } from 'node:util'

import { FORMATS } from '../values/formats.ts'

/** Any object within a document. */
interface Node { [key: string]: any }

/**
 * Finishes a document from @fastify/swagger: converts types and formats for OpenAPI, lists repeated parameters,
 * headers and responses once, and sorts paths and components by name.
 */
export function finishDocument ({ paths, components, ...document }: Node) {
  const finished = converted({ paths: sorted(paths), schemas: sorted(components.schemas) })
  const operations = Object.values<Node>(finished.paths).flatMap(path => Object.values<Node>(path))
  const responses = operations.map(operation => operation.responses as Node)
  return {
    ...document,
    paths: finished.paths,
    components: {
      ...components,
      // Responses come last, because they contain headers.
      parameters: share('parameters', operations.map(({ parameters = [] }) => parameters), nameOfParameter),
      headers: share('headers', responses.flatMap(Object.values).map(({ headers = {} }) => headers), (_, name) => name),
      responses: share('responses', responses, nameOfResponse),
      schemas: finished.schemas,
    },
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
  return { ...words ? { type: type ?? 'string', ...one } : type && { type }, ...known && { format: known }, ...others }
}

/**
 * Moves parts of an API description from their holders to the returned components of this kind, and leaves references.
 * A part that occurs once stays where it is, and so do different parts that would have the same name.
 */
function share (kind: string, holders: Node[], nameOf: (part: Node, key: string) => string | undefined) {
  const places = new Map<string, { holder: Node, key: string }[]>()
  for (const holder of holders) {
    for (const [key, part] of Object.entries<Node>(holder)) {
      const name = nameOf(part, key)
      if (name) places.set(name, [...places.get(name) ?? [], { holder, key }])
    }
  }
  const shared: Node = {}
  for (const [name, [first, ...others]] of places) {
    const part = first!.holder[first!.key]
    if (others.length === 0 || !others.every(({ holder, key }) => isDeepStrictEqual(holder[key], part))) continue
    shared[name] = part
    for (const { holder, key } of [first!, ...others]) holder[key] = { $ref: `#/components/${kind}/${name}` }
  }
  return sorted(shared)
}

/** The name of a parameter: `IfNoneMatch`, `UserId`, `TheIdOfTheEvent`. */
const nameOfParameter = ({ name, description }: Node) => inOneWord(name === 'id' ? description : name)

/** The name of a response: the name of its schema, or the last of its messages. Each 304 is the same. */
function nameOfResponse (response: Node, status: string) {
  if (status === '304') return 'NotModified'
  const { $ref, properties } = response.content?.['application/json']?.schema ?? {}
  const { const: text, enum: texts = [text], examples = texts } = properties?.message ?? {}
  const message = examples.at(-1)
  return $ref?.split('/').at(-1) ?? (message && inOneWord(message))
}

/** A text as the name of a component: `TheIdOfTheEvent`. */
const inOneWord = (text: string) => text.replace(/\W*\b(\w)|\W+/g, (_, letter = '') => letter.toUpperCase())

function sorted (node: Node) {
  return Object.fromEntries(Object.entries(node).sort(([one], [other]) => one < other ? -1 : 1))
}
