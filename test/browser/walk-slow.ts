// The first paint of the example app on a slow line.
import { startExample } from '../example.ts'

const { origin, walk } = await startExample({ COMMUNITY_NAME: 'Union of $& <Chess>' })

walk('On a slow line, the frame of the app is painted before its scripts are loaded', {}, async (t, page) => {
  const line = await page.context().newCDPSession(page)
  await line.send('Network.enable')
  await line.send('Network.setCacheDisabled', { cacheDisabled: true })
  await line.send('Network.emulateNetworkConditions', {
    offline: false, latency: 400, downloadThroughput: 50 * 1024, uploadThroughput: 50 * 1024,
  })
  await page.goto(`${origin}/events`, { waitUntil: 'commit' })
  await page.getByText('Loading …').waitFor()
  t.equal(await page.locator('#header').innerText(), 'Union of $& <Chess>', 'the frame has the name of the community')
  await page.locator('main h1').waitFor()
  const { paint, scripts, ready } = await page.evaluate<{ paint: number, scripts: number, ready: number }>(`({
    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
    scripts: Math.max(...performance.getEntriesByType('resource')
      .filter(({ initiatorType }) => initiatorType === 'script' || initiatorType === 'other')
      .map(({ responseEnd }) => responseEnd)),
    ready: performance.now(),
  })`)
  t.comment(`first paint after ${Math.round(paint)} ms, the page after ${Math.round(ready)} ms`)
  t.ok(paint < scripts, `${paint} < ${scripts}`)
  t.ok(paint / ready < 0.5, `${paint} of ${ready}`)
})
