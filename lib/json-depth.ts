/** Tells how deep the objects and arrays of a JSON text are nested, at most: 0 for a text without any. */
export function depthOf (json: string) {
  let depth = 0
  let deepest = 0
  for (const [bracket] of json.matchAll(/"(?:[^"\\]|\\.)*"?|[[\]{}]/gs)) {
    if (bracket === '{' || bracket === '[') deepest = Math.max(deepest, ++depth)
    else if (bracket === '}' || bracket === ']') depth--
  }
  return deepest
}
