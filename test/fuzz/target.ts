import { type RawResponse, Connection } from './connection.ts'
import type { Service } from './environment.ts'
import type { Operation } from './operations.ts'
import { checkResponse } from './properties.ts'
import type { Tally } from './report.ts'
import type { Message } from './requests.ts'
import type { Fixture } from './fixture.ts'

const PROBE = Buffer.from('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')

/** After these the service may close the connection by its own choice: it has not read all of the request. */
const CLOSING = [400, 413, 431]

interface Context {
  service: Service
  operation: Operation
  operations: Operation[]
  fixture: Fixture
  tally: Tally
}

/** One operation of the service, and the connection on which it is asked. */
export class Target {
  readonly #context: Context
  #connection: Connection | undefined

  constructor (context: Context) {
    this.#context = context
  }

  /** Sends a request. Throws unless everything holds that must hold of the responses, the service, and the connection. */
  async holds (message: Message) {
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
      const found = [(error as Error).message, shown || 'no response', service.lastWords]
      throw new Error(found.filter(Boolean).join('\n'), { cause: error })
    }
    // Whatever was changed; what is no message may have been taken for one.
    if (!message.isWhole || (responses[0]!.status < 400 && (message.method !== 'GET' || responses[0]!.status === 302))) {
      await fixture.restore()
    }
  }

  close () {
    this.#connection?.close()
    this.#connection = undefined
  }

  /** Sends it, and after it a request that is sure to be answered as long as the connection is right. */
  async #send (message: Message): Promise<RawResponse[]> {
    const { bytes, method, isWhole, isCut, closes } = message
    const { service } = this.#context
    if (!isWhole) {
      this.close()
      const connection = new Connection(service.port)
      try {
        const responses = await connection.provoke(bytes, method, isCut)
        await this.#probe()
        return responses
      } finally {
        connection.close()
      }
    }

    if (!this.#connection?.isOpen) this.#connection = new Connection(service.port)
    // What comes after a request that closes the connection is an error.
    const sent: [Buffer, string[]] = closes ? [bytes, [method]] : [Buffer.concat([bytes, PROBE]), [method, 'GET']]
    const [response, alive] = await this.#connection.exchange(...sent)
    if (!response) throw new Error(`The connection was closed instead: the service ${await service.fate()}`)
    if (closes || response.headers.connection === 'close') {
      this.close()
      if (!closes && !CLOSING.includes(response.status)) throw new Error('The connection is closed after this')
    } else if (alive?.status !== 200) {
      throw new Error(`The connection is no longer right: ${alive ? `${alive.status} ${alive.body}` : 'it was closed'}`)
    }
    return [response]
  }

  /** Throws unless the service is alive. */
  async #probe () {
    const { service } = this.#context
    this.#connection = new Connection(service.port)
    const [response] = await this.#connection.exchange(PROBE, ['GET'])
    if (response?.status !== 200) throw new Error(`The service ${await service.fate()}`)
  }
}
