/** The URL of each host that a DATABASE_URL lists, as libpq reads it. */
export function hostUrls (url: string) {
  const [, start, hosts, rest] = /^((?:\w+:\/\/(?:[^/?]*@)?)?)([^/?]*)(.*)$/s.exec(url)!
  return hosts!.split(',').map(host => `${start}${host}${rest}`)
}
