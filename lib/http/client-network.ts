import { isIPv6 } from 'node:net'

import ipaddr from 'ipaddr.js'

import type { Config } from '../config/config.ts'

/** An IP address with a port, as some proxies forward it: 192.0.2.1:5678 or [2001:db8::1]:5678. */
const WITH_PORT = /^(?:([\d.]+)|\[([\da-f:.]+)\]):\d+$/i

/** Parses an IP address with or without a port; `undefined` for anything else. */
function parseAddress (address: string) {
  const [, ipv4, ipv6] = WITH_PORT.exec(address) ?? []
  const bare = ipv4 ?? ipv6 ?? address
  return ipaddr.isValid(bare) ? ipaddr.process(bare) : undefined
}

/** Creates a function that tells whether an IP address, with or without a port, belongs to these networks. */
function isWithin (networks: string[]) {
  const ranges = networks.map(network => {
    const [ip, bits] = ipaddr.parseCIDR(network.includes('/') ? network : `${network}/${isIPv6(network) ? 128 : 32}`)
    // An IPv4 address in the form of IPv6 is an IPv4 address.
    return ip instanceof ipaddr.IPv6 && ip.isIPv4MappedAddress() && bits >= 96
      ? [ip.toIPv4Address(), bits - 96] as const
      : [ip, bits] as const
  })
  return (address: string) => {
    const ip = parseAddress(address)
    return ip !== undefined && ranges.some(([network, bits]) => ip.kind() === network.kind() && ip.match(network, bits))
  }
}

/**
 * Creates a function that tells whether TRUST_PROXY trusts this IP address at this hop. Hop 0 is the connection itself.
 */
export function isProxyOf ({ TRUST_PROXY }: Pick<Config, 'TRUST_PROXY'>) {
  if (TRUST_PROXY === false) return () => false
  return typeof TRUST_PROXY === 'number' ? (_address: string, hop: number) => hop < TRUST_PROXY : isWithin(TRUST_PROXY)
}

/**
 * Returns the network of a client: its IPv4 address in the canonical form, or the first 48 bits of its IPv6 address,
 * because no subscriber has a larger one. Limits and queues count by it. Anything that is not an IP address becomes
 * `unknown`, so that clients cannot invent networks.
 */
export function clientNetwork (address: string): string {
  const ip = parseAddress(address)
  if (!ip) return 'unknown'
  if (ip instanceof ipaddr.IPv4) return ip.toString()
  return `${ip.parts.slice(0, 3).map(part => part.toString(16)).join(':')}::/48`
}
