import { type RawResponse, Connection } from './connection.ts'
import type { Service } from './environment.ts'
import type { Operation } from './operations.ts'
import { checkResponse } from './properties.ts'
import type { Tally } from './report.ts'
import type { Message } from './requests.ts'
import type { Fixture } from './fixture.ts'

const PROBE = Buffer.from('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')

/** With these statuses the service may close the connection: it has not read the whole request. */
const CLOSING = [400, 413, 415, 431]

interface Context {
  service: Service
  operation: Operation
  operations: Operation[]
  fixture: Fixture
  tally: Tally
}

/** An operation, and the connection that its requests are sent on. */
export class Target {
  readonly #context: Context
  #connection: Connection | undefined

  constructor (context: Context) {
    this.#context = context
  }

  /** Sends a request. Throws unless its responses are allowed and the service and the connection stay usable. */
  async check (message: Message) {
    const { service, operation, operations, fixture, tally } = this.#context
    await service.prepare()
    tally.requests++
    let responses: RawResponse[] = []
    try {
      responses = await this.#send(message)
      for (const response of responses) {
        tally.add(response.status)
        await checkResponse(response, message, operation, operations, fixture)
      }
    } catch (error) {
      this.close()
      const shown = responses.map(({ status, body }) => `${status} ${body.slice(0, 500)}`).join('\n')
      const found = [(error as Error).message, shown || 'no response', await service.lastLogLine()]
      throw new Error(found.filter(Boolean).join('\n'), { cause: error })
    }
    // The request may have written; malformed bytes may have been read as any request.
    const [first] = responses
    if (!message.isWellFormed || (first!.status < 400 && (message.method !== 'GET' || first!.status === 302))) {
      await fixture.restore()
    }
  }

  close () {
    this.#connection?.close()
    this.#connection = undefined
  }

  /** Sends the request, followed by a probe that must succeed if the connection stays open. */
  async #send (message: Message): Promise<RawResponse[]> {
    const { bytes, method, isWellFormed, isTruncated, closes } = message
    const { service } = this.#context
    if (!isWellFormed) {
      this.close()
      const connection = new Connection(service.port)
      try {
        const responses = await connection.sendMalformed(bytes, method, isTruncated)
        await this.#probe()
        return responses
      } finally {
        connection.close()
      }
    }

    if (!this.#connection?.isOpen) this.#connection = new Connection(service.port)
    // Nothing may follow a request that closes the connection.
    const sent: [Buffer, string[]] = closes ? [bytes, [method]] : [Buffer.concat([bytes, PROBE]), [method, 'GET']]
    const [response, alive] = await this.#connection.exchange(...sent)
    if (!response) throw new Error(`The connection was closed instead: the service ${await service.fate()}`)
    if (closes || response.headers.connection === 'close') {
      this.close()
      if (!closes && !CLOSING.includes(response.status)) throw new Error('The service closed the connection')
    } else if (alive?.status !== 200) {
      throw new Error(`The connection is broken: ${alive ? `${alive.status} ${alive.body}` : 'it was closed'}`)
    }
    return [response]
  }

  /** Throws unless the service responds. */
  async #probe () {
    const { service } = this.#context
    this.#connection = new Connection(service.port)
    const [response] = await this.#connection.exchange(PROBE, ['GET'])
    if (response?.status !== 200) throw new Error(`The service ${await service.fate()}`)
  }
}
