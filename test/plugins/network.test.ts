import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'

import { make } from '../helper.ts'
import t from '../suite.ts'

t.test('request.network is the network behind the proxies, also after the client has gone', async t => {
  const { app } = await make(t, { TRUST_PROXY: '1' })
  const networks: string[] = []
  const handled = new Promise<void>(resolve => {
    app.addHook('onRequest', async request => {
      networks.push(request.network)
      request.socket.destroy()
      await once(request.socket, 'close')
      networks.push(request.network)
      resolve()
    })
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  client.on('error', () => {}).write('GET /livez HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2001:db8:1:2::3\r\n\r\n')
  await handled
  t.strictSame(networks, ['2001:db8:1::/48', '2001:db8:1::/48'])
})
