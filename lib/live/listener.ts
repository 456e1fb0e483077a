import { randomInt } from 'node:crypto'
import { Readable } from 'node:stream'

/** A list that a client watches. */
export interface WatchedList {
  /** The path and the query, as the client gave them. */
  readonly url: string
  /** Entity tag of the newest body that was read, without quotes. */
  etag: string | undefined
  /** A time at which `etag` was current, in milliseconds of `performance.now()`. */
  readAt: number
}

/** Separates the entity tags in the id of an event. Entity tags are base64url. */
const SEPARATOR = ','

/** A comment of the event stream. `EventSource` hides comments. */
const COMMENT = ':\n\n'

/** A sign of life that a page can see, because a browser does not notice that a connection has gone silent. */
const PING = 'event: ping\ndata: {}\n\n'

/**
 * Range of the number of pings after which a stream ends, and its client connects again: three to five minutes. The
 * range spreads clients that have connected at once, for example after a restart. For about 16 minutes, the kernel
 * accepts pings for a client whose network is gone. TCP keep-alive does not help, because the kernel sends no probes
 * while a ping is unacknowledged.
 */
const PINGS = { least: 12, most: 20 }

/**
 * After the end of a stream, its client connects again after a random time between these. If 1,000 connected at once,
 * other requests would take 500 to 1,000 ms, instead of 90 ms.
 */
const RETRY_MS = { least: 1000, most: 3000 }

/**
 * The event stream of a client that watches lists (HTML, § 9.2 Server-sent events). Without its pings, a page whose
 * network was gone would show an old list for about 16 minutes, instead of at most one. The id of an event is the
 * vector of the entity tags that the client knows. After a gap, the client sends this id, and the service compares.
 */
export class Listener<List extends WatchedList = WatchedList> extends Readable {
  readonly network: string
  readonly lists: readonly List[]
  /** A read of a list may complete after the stream has ended. */
  #hasEnded = false
  /** The time of the request. A list that was read earlier could be older than the list that the client knows. */
  readonly #since = performance.now()
  /** The entity tags that the client knows, in the order of `lists`. */
  readonly #known: (string | undefined)[]
  #pingsLeft = randomInt(PINGS.least, PINGS.most + 1)
  /** Bytes of earlier messages that the kernel has not accepted. */
  readonly #unsent: () => number

  /** `lastEventId` is the vector that the client knows. `unsent` returns the bytes that wait for the client. */
  constructor (network: string, lists: readonly List[], lastEventId: string, unsent: () => number) {
    super({ read () {} })
    this.network = network
    this.lists = lists
    const known = lastEventId.split(SEPARATOR)
    this.#known = lists.map((_list, index) => known.length === lists.length ? known[index] : undefined)
    this.#unsent = unsent
    // The headers leave with the first bytes.
    this.push(COMMENT)
  }

  /**
   * Sends the entity tags that the client does not know. Does nothing while an earlier message waits, so that a client
   * that does not read holds a single message. The next call compares again and sends the newest entity tags. Returns
   * the number of messages.
   */
  tell () {
    if (!this.#isReading) return 0
    let messages = ''
    let count = 0
    for (const [index, { url, etag, readAt }] of this.lists.entries()) {
      if (etag === undefined || etag === this.#known[index] || readAt < this.#since) continue
      this.#known[index] = etag
      messages += `id: ${this.#known.join(SEPARATOR)}\ndata: ${JSON.stringify({ list: url, etag: `"${etag}"` })}\n\n`
      count++
    }
    if (count > 0) this.push(messages)
    return count
  }

  /**
   * Sends a ping, so that proxies do not close the connection as idle. After the last ping, ends the stream, or closes
   * the connection of a client that does not read.
   */
  keepAlive () {
    if (this.#hasEnded) return
    this.#pingsLeft--
    if (this.#isReading) this.#pingsLeft > 0 ? this.push(PING) : this.end()
    else if (this.#pingsLeft <= 0) this.destroy()
  }

  /** Ends the stream. The client soon connects again, usually to another instance if this one stops. */
  end () {
    if (this.#hasEnded) return
    this.push(`retry: ${randomInt(RETRY_MS.least, RETRY_MS.most)}\n\n`)
    this.push(null)
    this.#hasEnded = true
  }

  get #isReading () {
    return !this.#hasEnded && !this.destroyed && this.readableLength === 0 && this.#unsent() === 0
  }
}
