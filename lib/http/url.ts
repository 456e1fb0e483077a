/** Encodes each path segment that cannot be decoded, such as `%FF`, so that it decodes to itself. */
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
