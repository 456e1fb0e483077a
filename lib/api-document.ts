import { isDeepStrictEqual } from 'node:util'

/** An object of a document, wherever it stands. */
interface Node { [key: string]: any }

/** The formats that only this service knows: what they are to others, if anything. */
const FORMATS: Record<string, string | undefined> = { url: 'uri', 'url-or-empty': undefined, text: undefined }

/**
 * Finishes a document that @fastify/swagger made of the schemas of this service. Each schema with a title goes to the
 * components, with a reference to it where it was, and the order of paths and components becomes that of their names.
 * Throws when two schemas that differ have the same title.
 */
export function finishDocument ({ paths, components, ...document }: Node) {
  const schemas: Node = {}
  const finish = (node: Node): Node => mapValues(node, (value, key) => {
    if (key === 'schema') return share(value)
    return key === 'examples' || typeof value !== 'object' || value === null ? value : finish(value)
  })

  function share ({ title, ...schema }: Node): Node {
    const finished = finishSchema(schema)
    if (!title) return finished
    schemas[title] ??= finished
    if (!isDeepStrictEqual(schemas[title], finished)) throw new Error(`Two schemas that differ are called ${title}`)
    return { $ref: `#/components/schemas/${title}` }
  }

  function finishSchema ({ format, properties, items, anyOf, ...schema }: Node): Node {
    const known = schema.type === 'integer' ? 'int64' : format in FORMATS ? FORMATS[format] : format
    return {
      ...schema.enum && { type: 'string' },
      ...schema,
      ...known && { format: known },
      ...properties && { properties: mapValues(properties, share) },
      ...items && { items: share(items) },
      ...anyOf && { anyOf: anyOf.map(share) },
    }
  }

  return { ...document, paths: finish(sorted(paths)), components: { ...components, schemas: sorted(schemas) } }
}

function mapValues (node: Node, change: (value: any, key: string) => unknown): Node {
  if (Array.isArray(node)) return node.map((value, index) => change(value, String(index)))
  return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, change(value, key)]))
}

function sorted (node: Node) {
  return Object.fromEntries(Object.entries(node).sort(([one], [other]) => one < other ? -1 : 1))
}
