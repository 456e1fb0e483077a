import { brotliDecompressSync, gunzipSync } from 'node:zlib'

import { LISTS, POLLS } from '../cases.ts'
import { get } from '../http.ts'
import type { Findings } from '../measure.ts'
import type { Server } from '../programs.ts'
import type { World } from '../world.ts'

const DECOMPRESS = { gzip: gunzipSync, br: brotliDecompressSync }

/** Whether every list tells who asks again that nothing has changed, and compresses; and what that takes. */
export async function measurePolls (findings: Findings, world: World, service: Server) {
  const operations = POLLS.filter(({ name }) => findings.wants(name))
  if (operations.length === 0) return
  const urls = LISTS.map(({ path }) => service.url + path)
  findings.facts['304 without a body'] = (await Promise.all(urls.map(answersNotModified))).every(Boolean)
  findings.facts['gzip and br'] = (await Promise.all(urls.map(compresses))).every(Boolean)
  for (const operation of operations) {
    // The middle one of some: one measurement alone would be that of a moment.
    await findings.compare([() => findings.run(world, service, operation, 64, 1)])
  }
}

async function answersNotModified (url: string) {
  const { headers: { etag } } = await get(url)
  if (!etag) return false
  const { status, body } = await get(url, { 'if-none-match': etag })
  return status === 304 && body.length === 0
}

async function compresses (url: string) {
  const { body: plain } = await get(url)
  for (const encoding of ['gzip', 'br'] as const) {
    const { headers, body } = await get(url, { 'accept-encoding': encoding })
    if (headers['content-encoding'] !== encoding || !DECOMPRESS[encoding](body).equals(plain)) return false
  }
  return true
}
