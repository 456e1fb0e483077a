import ipaddr from 'ipaddr.js'

/** An address with a port behind it, as some proxies forward it: 192.0.2.1:5678 or [2001:db8::1]:5678. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d+$/i

/**
 * The network of one subscriber, by the address of a request: an IPv4 address, however it is written, or the first 48
 * bits of an IPv6 address, the most that a subscriber gets. Limits, queues and budgets count by it. What is no address
 * is `unknown`, so that no client gets a network by making one up.
 */
export function clientNetwork (address: string): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(address) ?? []
  const bare = ipv4 ?? ipv6 ?? address
  if (!ipaddr.isValid(bare)) return 'unknown'
  const ip = ipaddr.process(bare)
  if (ip instanceof ipaddr.IPv4) return ip.toString()
  return `${ip.parts.slice(0, 3).map(part => part.toString(16)).join(':')}::/48`
}
