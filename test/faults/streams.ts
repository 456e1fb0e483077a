import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { send } from './http.ts'

const LISTS = ['/events', '/mentors', '/clubs', '/blogs', '/testimonials']

/** How soon clients hear of a commit, in milliseconds. */
export const TOLD = 1500

/** A client of `GET /live`. */
interface Stream {
  /** The status of the response. */
  status: number
  /** The entity tag of each list, as told last. */
  etags: Map<string, string>
  /** The id of the last message. */
  id: string
  /** Number of messages, and of messages that tell what the client knows already. */
  messages: number
  repeated: number
  /** The text after the last message. */
  rest: string
  /** When the stream ended, in milliseconds of `performance.now()`. */
  ended: number | undefined
  close (): void
}

/** Opens streams of changes of all lists. `check` returns what their clients miss. */
export async function openStreams (url: string, count: number, localAddress = '127.0.0.1', lastEventId?: string) {
  const streams = await Promise.all(Array.from({ length: count }, () => openStream(url, localAddress, lastEventId)))
  return {
    streams,
    close () { for (const { close } of streams) close() },
    /** Waits until all have heard of the current lists. Returns a problem after this time. */
    async check (milliseconds = TOLD) {
      const problems = new Set<string>()
      const deadline = performance.now() + milliseconds
      const current: [list: string, etag: unknown][] = []
      for (const path of LISTS) current.push([path, (await send(url, { method: 'GET', path })).headers.etag])
      const isTold = ({ etags }: Stream) => current.every(([list, etag]) => etags.get(list) === etag)
      while (!streams.every(isTold) && performance.now() < deadline) await sleep(20)
      for (const stream of streams) {
        if (stream.status !== 200) problems.add(`a stream got ${stream.status}`)
        else if (stream.ended) problems.add('a stream has ended')
        else if (!isTold(stream)) problems.add('a stream did not tell the current lists')
        if (stream.repeated > 0) problems.add('a stream told an entity tag twice')
      }
      return [...problems]
    },
  }
}

async function openStream (url: string, localAddress: string, lastEventId?: string) {
  const stream: Stream = {
    status: 0, etags: new Map(), id: '', messages: 0, repeated: 0, rest: '', ended: undefined, close: () => {},
  }
  const query = new URLSearchParams(LISTS.map((list): [string, string] => ['list', list]))
  const headers = { ...lastEventId && { 'last-event-id': lastEventId } }
  const outgoing = request(`${url}/live?${query}`, { agent: false, localAddress, headers })
  const end = () => { stream.ended ??= performance.now() }
  stream.close = () => outgoing.destroy()
  const [response] = await once(outgoing.on('error', end).end(), 'response') as [IncomingMessage]
  stream.status = response.statusCode!
  response.setEncoding('utf8').on('error', end).on('end', end).on('data', text => {
    const blocks = (stream.rest + text).split('\n\n')
    stream.rest = blocks.pop()!
    for (const block of blocks) {
      const found = /^id: (.*)\ndata: (.*)$/.exec(block)
      if (!found) {
        stream.rest = block.startsWith('retry') ? block : stream.rest
        continue
      }
      const { list, etag } = JSON.parse(found[2]!)
      stream.id = found[1]!
      stream.messages++
      if (stream.etags.get(list) === etag) stream.repeated++
      stream.etags.set(list, etag)
    }
  })
  return stream
}
