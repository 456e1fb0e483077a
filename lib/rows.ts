/** The row that a statement must return. Throws when there is none: the operation then answers its failure. */
export function only<T> ([row]: readonly T[]): T {
  if (row === undefined) throw new Error('There is no such row')
  return row
}
