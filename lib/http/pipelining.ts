import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of a connection that are in progress at once. Clients that people use send one after the other. */
const IN_PROGRESS = 8

/** Requests of a connection that may wait for those. With one more, it is closed. */
const WAITING = 92

interface Pipeline {
  inProgress: number
  waiting: [IncomingMessage, ServerResponse][]
}

/**
 * Limits the requests of each connection that are in progress, from their headers until the kernel has the whole
 * response. Without it, 40 KB of pipelined requests would begin 900 reads, and nothing that a read checks would know of
 * the others. To pause the socket is no limit: Node.js has parsed up to 64 KB by then, and resumes it for each body.
 */
export function limitPipelining (listener: RequestListener): RequestListener {
  const pipelines = new WeakMap<Socket, Pipeline>()

  return (request, response) => {
    let pipeline = pipelines.get(request.socket)
    if (!pipeline) pipelines.set(request.socket, pipeline = { inProgress: 0, waiting: [] })
    if (pipeline.inProgress < IN_PROGRESS) begin(pipeline, request, response)
    else if (pipeline.waiting.length < WAITING) pipeline.waiting.push([request, response])
    else request.socket.destroy()
  }

  function begin (pipeline: Pipeline, request: IncomingMessage, response: ServerResponse) {
    pipeline.inProgress++
    response.on('close', () => {
      pipeline.inProgress--
      const next = pipeline.waiting.shift()
      if (next && !request.socket.destroyed) begin(pipeline, ...next)
    })
    listener(request, response)
  }
}
