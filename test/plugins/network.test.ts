import { once } from 'node:events'
import { createReadStream, type ReadStream } from 'node:fs'
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

t.test('A file that is sent behind another response after its client has gone is closed', async t => {
  const { app } = await make(t)
  const never = new Promise<void>(() => {})
  const files: ReadStream[] = []
  const sent = new Promise<void>(resolve => {
    app.get('/first', () => never)
    app.get('/file', async request => {
      client.destroy()
      await once(request.socket, 'close')
      files.push(createReadStream('openapi.json'))
      resolve()
      return files[0]
    })
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const client = connect((app.server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET /first HTTP/1.1\r\nHost: a\r\n\r\nGET /file HTTP/1.1\r\nHost: a\r\n\r\n')
  await sent
  const [file] = files
  if (!file!.closed) await once(file!, 'close')
  t.ok(file!.closed)
})
