import ipaddr from 'ipaddr.js'

/** An address with a port behind it, as some proxies forward it: 192.0.2.1:5678 or [2001:db8::1]:5678. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d+$/i

/**
 * The network that one person has, by the address of a request: an IPv4 address, however it is written, or the prefix
 * of an IPv6 address: /64, or with `bits` what a subscriber may have, /56 or /48. What is no address is `unknown`, so
 * that no client gets a network by making one up.
 */
export function clientNetwork (address: string, bits: 48 | 56 | 64 = 64): string {
  const [, ipv4, ipv6] = WITH_PORT.exec(address) ?? []
  const bare = ipv4 ?? ipv6 ?? address
  if (!ipaddr.isValid(bare)) return 'unknown'
  const ip = ipaddr.process(bare)
  if (ip instanceof ipaddr.IPv4) return ip.toString()
  const prefix = ip.parts.slice(0, Math.ceil(bits / 16))
  if (bits === 56) prefix[3]! &= 0xff00
  return `${prefix.map(part => part.toString(16)).join(':')}::/${bits}`
}
