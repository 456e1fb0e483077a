import type { IncomingMessage, OutgoingHttpHeaders, RequestListener, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

import { Negotiator } from '@fastify/accept-negotiator'
import fp from 'fastify-plugin'
import fresh from 'fresh'

import type { Sql } from '../lib/database.ts'
import { type AnswerCounts, type AnswerQuery, keepAnswers } from '../lib/kept-answers.ts'
import { type RepeatCounts, repeatResponses } from '../lib/repeated-requests.ts'
import { type Blocks, CODINGS, lengthOf } from '../lib/shared-body.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Answers a request that came before, where that is sure to be right; hands any other to `next`. */
    repeatResponse (request: IncomingMessage, response: ServerResponse, next: RequestListener): void
    /** What became of requests so far, and the bytes that are kept. */
    kept: {
      answers: { counts: AnswerCounts, bytes (): number }
      responses: { counts: Map<string, RepeatCounts>, bytes (): number }
    }
  }

  interface FastifyReply {
    /**
     * What a query answers now, mostly without running it (see lib/kept-answers.ts), for the handler to return; with it
     * come its headers. The function that makes the query must be the same for every request. No row gives null.
     */
    keptAnswer<Args extends unknown[]> (query: (sql: Sql, ...args: Args) => AnswerQuery, ...args: Args): Promise<any>
  }

  interface FastifyContextConfig {
    /** The header `Cache-Control` of a kept answer. */
    cacheControl?: string
  }
}

/** Shorter bodies fit into a packet as they are, in bytes. */
const WORTH_COMPRESSING = 1024

/** A body is sent at a stretch when it is one block, and otherwise as fast as the client takes it. */
const payload = (blocks: Blocks) => blocks.length === 1 ? blocks[0] : Readable.from(blocks)

/** Answers that are kept for as long as they are right. The public ones have an entity tag, and are compressed once. */
export default fp(async app => {
  const { KEPT_ANSWERS_SIZE, DATABASE_TIMEOUT, IDLE_TIMEOUT, LOG_LEVEL } = app.config
  const bytes = KEPT_ANSWERS_SIZE * 2 ** 20
  const answers = keepAnswers(app.sql, app.sqlProbe, bytes * 3 / 4, DATABASE_TIMEOUT)
  const responses = repeatResponses(answers.readState, bytes / 4, IDLE_TIMEOUT)
  // What is not routed is not logged either.
  const isLogged = ['info', 'debug', 'trace'].includes(LOG_LEVEL)
  const negotiator = new Negotiator({ supportedValues: CODINGS })
  const ids = new WeakMap<object, number>()
  let lastId = 0

  app.decorate('kept', { answers, responses })

  app.decorate('repeatResponse', (request, response, next) => {
    if (app.isClosing()) next(request, response)
    else responses.handle(request, response, next)
  })

  app.decorateReply('keptAnswer', async function (query, ...args) {
    const { request } = this
    const seen = responses.stateAt(request.raw)
    const { body, state } = await answers.answer(keyOf(query, args), sql => query(sql, ...args), seen)
    if (!body) return null
    const { cacheControl } = request.routeOptions.config
    if (cacheControl) this.header('cache-control', cacheControl)
    this.type('application/json; charset=utf-8')
    // What only this person may see is stored by nobody, and its length tells nothing.
    if (request.user) {
      this.header('content-length', body.length)
      return payload(body.blocks)
    }

    const { 'accept-encoding': accepted } = request.headers
    const coding = accepted && body.length > WORTH_COMPRESSING && negotiator.negotiate(accepted)
    const blocks = coding ? await body.encode(coding) : body.blocks
    const etag = coding ? `"${body.hash}-${coding}"` : `"${body.hash}"`
    const vary = this.getHeader('vary')
    this.headers({ etag, vary: vary ? `${vary}, Accept-Encoding` : 'Accept-Encoding' })
    const length = { 'content-length': lengthOf(blocks), ...coding && { 'content-encoding': coding } }
    if (!isLogged && blocks.length === 1) {
      const headers = { ...this.getHeaders() as OutgoingHttpHeaders, ...length, etag }
      responses.keep(request.raw, { headers, bytes: blocks[0]!, state, route: request.routeOptions.url! })
    }
    if (fresh(request.headers, { etag })) return this.removeHeader('content-type').code(304).send()
    this.headers(length)
    return payload(blocks)
  })

  /** Functions have no names of their own. */
  function keyOf (query: object, args: unknown[]) {
    let id = ids.get(query)
    if (!id) ids.set(query, id = ++lastId)
    return `${id}${JSON.stringify(args)}`
  }
}, { name: 'kept-answers', dependencies: ['database', 'auth', 'graceful-close'] })
