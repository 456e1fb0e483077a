import ipaddr from 'ipaddr.js'

/** An address with a port behind it, as some proxies forward it: 192.0.2.1:5678 or [2001:db8::1]:5678. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d+$/i

/**
 * The network that one person has, by the address of a request: an IPv4 address, however it is written, or the /64
 * prefix of an IPv6 address. Where load is shared out it is the /48 prefix: a subscriber may have 65,536 of the others.
 * What is no address is `unknown`, so that nobody gets a network by making one up.
 */
export function clientNetwork (address: string, bits: 48 | 64 = 64): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(address) ?? []
  const bare = ipv4 ?? ipv6 ?? address
  if (!ipaddr.isValid(bare)) return 'unknown'
  const ip = ipaddr.process(bare)
  if (ip instanceof ipaddr.IPv4) return ip.toString()
  return `${ip.parts.slice(0, bits / 16).map(part => part.toString(16)).join(':')}::/${bits}`
}
