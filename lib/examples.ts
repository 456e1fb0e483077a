import type { TSchema } from '@sinclair/typebox'

/** A value that fits a schema: its own first example, or one that is made of those of its parts. */
export function exampleOf (schema: TSchema): unknown {
  const { examples, enum: words, anyOf, items, properties } = schema
  if (examples) return examples[0]
  if (words) return words[0]
  if (anyOf) return exampleOf(anyOf[0])
  if (items) return [exampleOf(items)]
  if (properties) {
    return Object.fromEntries(Object.entries<TSchema>(properties).map(([name, part]) => [name, exampleOf(part)]))
  }
  return schema.const
}

/** Examples of an answer: one for each text that it may have, or one. */
export function examplesOf (answer: TSchema): unknown[] {
  const { examples, enum: texts, properties } = answer
  if (examples ?? texts) return examples ?? texts
  const example = exampleOf(answer)
  const messages: string[] | undefined = properties?.message?.enum
  return messages ? messages.map(message => Object.assign({}, example, { message })) : [example]
}
