const [QUOTE, BACKSLASH, COMMA] = Buffer.from('"\\,')
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('[]{}')

/**
 * Tells whether the objects and arrays of a JSON text in UTF-8 are nested more than `levels` deep, or whether the text
 * has more than `commas` commas between values. Run it before a parser, which may need a hundred times as long for
 * brackets as for other text, and twenty times the memory for many small values.
 */
export function isDeeperThan (json: Uint8Array, levels: number, commas = Infinity) {
  let depth = 0
  let count = 0
  let inString = false
  // The bytes of non-ASCII characters differ from all of these.
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]
    if (inString) {
      if (byte === BACKSLASH) i++
      else if (byte === QUOTE) inString = false
    } else if (byte === QUOTE) inString = true
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      if (++depth > levels) return true
    } else if (byte === COMMA) {
      if (++count > commas) return true
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
  }
  return false
}
