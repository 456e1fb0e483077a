import ipaddr from 'ipaddr.js'

/** An IP address with a port, as some proxies forward it: 192.0.2.1:5678 or [2001:db8::1]:5678. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d+$/i

/**
 * Returns the subscriber that an IP address belongs to: the IPv4 address in its canonical form, or the first 48 bits of
 * an IPv6 address, the largest network of a subscriber. Limits, queues and budgets count by it. Anything that is not an
 * IP address becomes `unknown`, so that clients cannot invent networks.
 */
export function clientNetwork (address: string): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(address) ?? []
  const bare = ipv4 ?? ipv6 ?? address
  if (!ipaddr.isValid(bare)) return 'unknown'
  const ip = ipaddr.process(bare)
  if (ip instanceof ipaddr.IPv4) return ip.toString()
  return `${ip.parts.slice(0, 3).map(part => part.toString(16)).join(':')}::/48`
}
