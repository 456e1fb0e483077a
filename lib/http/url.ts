/** Encodes each segment of a URL's path that does not decode, such as `%FF`; it then decodes to itself. */
export function toDecodable (url: string) {
  if (!url.includes('%')) return url
  const [path, ...query] = url.split('?')
  const segments = path!.split('/').map(segment => isDecodable(segment) ? segment : encodeURIComponent(segment))
  return [segments.join('/'), ...query].join('?')
}

function isDecodable (text: string) {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
