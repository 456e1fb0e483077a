import { chooseFrontend } from '#lib/auth/oauth-state.js'
import t from '../../suite.ts'

t.test('The frontend is chosen by the host name of Origin, then of Referer; the first one is the default', async t => {
  const [first, second, third] = ['https://app.example.org', 'http://127.0.0.1:5173', 'https://old.example.org:8443']
  const configured = [first, second, third]
  const table: [origin: string | undefined, referer: string | undefined, chosen: string][] = [
    [undefined, undefined, first],
    [second, undefined, second],
    [undefined, `${second}/a/page?x=1#y`, second],
    [second, `${third}/`, second],
    ['https://unknown.example.org', `${third}/`, third],
    ['null', `${third}/`, third],
    ['not an address', `${third}/`, third],
    ['https://unknown.example.org', 'https://neither.example.org/', first],
    ['https://old.example.org', undefined, third],
    ['http://old.example.org:1', undefined, third],
    ['HTTPS://OLD.EXAMPLE.ORG', undefined, third],
    ['https://old.example.org.evil.example', undefined, first],
    ['https://evil.example/old.example.org', undefined, first],
    ['https://old.example.org@evil.example', undefined, first],
    ['https://sub.old.example.org', undefined, first],
  ]
  for (const [origin, referer, chosen] of table) {
    t.equal(chooseFrontend(configured, origin, referer), chosen, JSON.stringify([origin, referer]))
  }
  t.equal(chooseFrontend([], second, second), undefined, 'none without configuration')

  const ports = ['http://localhost:4173', 'http://localhost:5173']
  t.equal(chooseFrontend(ports, ports[1]), ports[1], 'the exact origin among several with the same host name')
  t.equal(chooseFrontend(ports, 'http://localhost:9999'), ports[0], 'otherwise the first of them')
})
