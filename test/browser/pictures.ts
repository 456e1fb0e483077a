// Chromium loads a picture once, although pages of other origins show it with and without `crossorigin`.
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

import sharp from 'sharp'

import { openPage } from '../chromium.ts'
import { bearer, build, person } from '../helper.ts'
import t from '../suite.ts'

t.test('A browser loads a picture once, with and without the attribute crossorigin', async t => {
  const app = await build(t)
  let loads = 0
  app.server.on('request', ({ url }) => { if (url!.startsWith('/pictures/')) loads++ })
  const base = await app.listen()
  const ada = await person(app)
  const response = await fetch(`${base}/me/pictures`, {
    method: 'POST',
    headers: { ...bearer(ada.token), 'content-type': 'image/png' },
    body: await sharp({ create: { width: 9, height: 9, channels: 3, background: 'teal' } }).png().toBuffer(),
  })
  const { picture } = await response.json() as { picture: { url: string } }
  const page = await openPage(t)
  const server = createServer(({ url }, response) => response.setHeader('content-type', 'text/html').end(
    `<img src="${picture.url}"${url === '/with' ? ' crossorigin' : ''}>`
  )).listen(0)
  t.teardown(() => server.close().closeAllConnections())
  await once(server, 'listening')
  for (const path of ['/without', '/with', '/without', '/with']) {
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`)
    t.equal(await page.evaluate('document.images[0].naturalWidth'), 9, path)
  }
  t.equal(loads, 1)
})
