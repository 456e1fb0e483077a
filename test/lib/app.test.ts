import { createDatabase, make } from '../helper.ts'
import t from '../suite.ts'

t.test('TRUST_PROXY decides which proxies may set the client address with X-Forwarded-For', async t => {
  const DATABASE_URL = await createDatabase()
  const [CLIENT, PROXY, OUTER] = ['192.0.2.7', '10.0.0.1', '10.1.0.1']
  const [NETWORKS, MAPPED] = ['2001:db8::/32, 10.0.0.0/8', `::1, ::ffff:${PROXY}/128`]
  const table: [trusted: string | undefined, peer: string, forwarded: string | undefined, ip: string][] = [
    [undefined, PROXY, CLIENT, PROXY],
    ['false', PROXY, CLIENT, PROXY],

    [PROXY, PROXY, CLIENT, CLIENT],
    [PROXY, PROXY, undefined, PROXY],
    [PROXY, CLIENT, '192.0.2.8', CLIENT],
    [PROXY, PROXY, `192.0.2.8, ${CLIENT}`, CLIENT],
    [PROXY, PROXY, `${CLIENT}, ${OUTER}`, OUTER],
    [PROXY, `::ffff:${PROXY}`, CLIENT, CLIENT],
    [PROXY, PROXY, `${CLIENT}, unknown`, 'unknown'],
    [NETWORKS, PROXY, `192.0.2.8, ${CLIENT}, ${OUTER}`, CLIENT],
    [NETWORKS, PROXY, `192.0.2.8, ${CLIENT}:5678, ${OUTER}:443`, `${CLIENT}:5678`],
    [NETWORKS, PROXY, `${CLIENT}, [2001:db8::7]:443`, CLIENT],
    [NETWORKS, '2001:db8::5', '2001:db9::1', '2001:db9::1'],
    [MAPPED, '::1', CLIENT, CLIENT],
    [MAPPED, PROXY, CLIENT, CLIENT],
    ['::ffff:10.0.0.0/104', OUTER, CLIENT, CLIENT],

    ['1', PROXY, `192.0.2.8, ${CLIENT}`, CLIENT],
    ['2', PROXY, `192.0.2.8, ${CLIENT}, ${OUTER}`, CLIENT],
    ['2', PROXY, undefined, PROXY],
  ]
  for (const TRUST_PROXY of new Set(table.map(([trusted]) => trusted))) {
    const { app } = await make(t, { DATABASE_URL, TRUST_PROXY })
    app.get('/ip', async request => request.ip)
    for (const [, remoteAddress, forwarded, ip] of table.filter(([trusted]) => trusted === TRUST_PROXY)) {
      const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }
      const response = await app.inject({ url: '/ip', remoteAddress, headers })
      t.equal(response.body, ip, `TRUST_PROXY=${TRUST_PROXY}, ${forwarded} by ${remoteAddress}`)
    }
  }
})
