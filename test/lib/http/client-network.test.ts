import { clientNetwork } from '#lib/http/client-network.js'
import t from '../../suite.ts'

t.test('clientNetwork', async t => {
  const table: [address: string, network: string][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['192.0.2.1:5678', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:0DB8:0001:0002::', '2001:db8:1::/48'],
    ['2001:db8:1:3::', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8:0::/48'],
    ['::1', '0:0:0::/48'],
    ['fe80::1%eth0', 'fe80:0:0::/48'],
    ['[2001:db8:1:2::3]:5678', '2001:db8:1::/48'],
    ['[::ffff:192.0.2.1]:5678', '192.0.2.1'],
    ['unknown', 'unknown'],
    ['_hidden', 'unknown'],
    ['192.0.2.256', 'unknown'],
    ['192.0.2.1:x', 'unknown'],
    ['', 'unknown'],
    ['x'.repeat(10_000), 'unknown'],
  ]
  for (const [address, network] of table) t.equal(clientNetwork(address), network, address.slice(0, 40))
  t.equal(clientNetwork(undefined as unknown as string), 'unknown', 'of a closed connection')
})
