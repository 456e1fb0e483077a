import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests of a connection that are in progress at once. Clients that people use send one after the other. */
const IN_PROGRESS = 8

/** Requests of a connection that may wait for those. With one more, it is closed. */
const WAITING = 92

/** Bytes that may follow the first of those. Headers and bodies of requests that wait are in no other account. */
const WAITING_BYTES = 65_536

interface Waiting {
  request: IncomingMessage
  response: ServerResponse
  /** Bytes that the connection had received by then. */
  bytesRead: number
}

interface Pipeline {
  inProgress: number
  waiting: Waiting[]
}

/**
 * Limits the requests of each connection that are in progress, from their headers until the kernel has the whole
 * response. Without it, 40 KB of pipelined requests would begin 900 reads, and nothing that a read checks would know of
 * the others. To pause the socket is no limit: Node.js has parsed up to 64 KB by then, and resumes it for each body.
 */
export function limitPipelining (listener: RequestListener): RequestListener {
  const pipelines = new WeakMap<Socket, Pipeline>()

  return (request, response) => {
    const { socket } = request
    let pipeline = pipelines.get(socket)
    if (!pipeline) pipelines.set(socket, pipeline = { inProgress: 0, waiting: [] })
    const { inProgress, waiting } = pipeline
    if (inProgress < IN_PROGRESS) return begin(pipeline, request, response)
    waiting.push({ request, response, bytesRead: socket.bytesRead })
    const bytes = socket.bytesRead - waiting[0]!.bytesRead
    if (waiting.length > WAITING || bytes > WAITING_BYTES) socket.destroy()
  }

  function begin (pipeline: Pipeline, request: IncomingMessage, response: ServerResponse) {
    pipeline.inProgress++
    response.on('close', () => {
      pipeline.inProgress--
      const next = pipeline.waiting.shift()
      if (next && !request.socket.destroyed) begin(pipeline, next.request, next.response)
    })
    listener(request, response)
  }
}
