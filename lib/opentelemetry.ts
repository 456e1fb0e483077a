import { FastifyOtelInstrumentation } from '@fastify/otel'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'

import { VERSION } from './config.ts'
import { type EndStatement, statementTracing } from './database/statements.ts'
import { pathOf } from './http/logger.ts'
import { setSpan } from './http/trace-context.ts'
import { shutdownTimeouts } from './shutdown.ts'
import { withTimeout } from './timeout.ts'

/** Probes and scrapes come all the time: their spans would only hide others. */
const UNTRACED = new Set(['/livez', '/readyz', '/metrics'])

/** A statement begins or ends a transaction, or it writes, perhaps in a WITH, or else reads. */
const OPERATION = /^(?:begin|commit|rollback)\b|\b(?:INSERT(?= INTO)|DELETE(?= FROM)|(?<!\b(?:FOR|KEY|DO) )UPDATE)\b/

/**
 * Turns on OpenTelemetry: spans of requests and of the statements that they run, sent in batches to the collector at
 * `endpoint` (OTLP over HTTP, as JSON). The SDK itself reads the other variables of OpenTelemetry from the environment:
 * the sampler, resource attributes, headers, the size of batches. A collector that is away costs spans and a line in
 * the log. What is left is sent when the service closes. A process has one tracer.
 */
export async function startTracing (app: FastifyInstance, endpoint: string) {
  const provider = new NodeTracerProvider({
    // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win.
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'community-platform', 'service.version': VERSION }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(createExporter(endpoint, app.log))],
  })
  provider.register()
  const tracer = provider.getTracer('community-platform', VERSION)

  const instrumentation = new FastifyOtelInstrumentation({
    ignorePaths: ({ url }) => UNTRACED.has(pathOf(url)),
    // One span a request: neither one for each of its hooks, nor the stack traces that the log has.
    instrumentHooks: false,
    instrumentHandler: false,
    recordExceptions: false,
    requestHook (span, request) {
      const { method, routeOptions: { url: route }, protocol } = request
      span.updateName(route ? `${method} ${route}` : method)
      // The instrumentation would put the query there, which may carry the code of a sign-in.
      span.setAttributes({ 'url.path': pathOf(request.url), 'url.scheme': protocol })
      setSpan(request.raw, span.spanContext())
    },
  })
  instrumentation.setTracerProvider(provider)

  statementTracing.start = () => {
    // A statement outside of a recorded request has no span.
    if (!trace.getActiveSpan()?.isRecording()) return
    const span = tracer.startSpan('SQL', { kind: SpanKind.CLIENT, attributes: { 'db.system.name': 'postgresql' } })
    return ((text, error) => {
      if (text) {
        const operation = OPERATION.exec(text)?.[0].toUpperCase() ?? 'SELECT'
        span.updateName(operation)
        span.setAttributes({ 'db.operation.name': operation, 'db.query.text': text })
      }
      if (error) {
        // The message may quote values.
        const { name, code = name } = error as { name: string, code?: string }
        span.setAttribute('error.type', code)
        span.setStatus({ code: SpanStatusCode.ERROR })
      }
      span.end()
    }) satisfies EndStatement
  }

  await app.register(instrumentation.plugin())
  // After the body has arrived: reading it would lose the context.
  app.addHook('preHandler', (request, _reply, done) => {
    context.with(request.opentelemetry().context ?? context.active(), done)
  })
  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    // The instrumentation takes every error for one of the service; these are the client's.
    if (statusCode >= 400 && statusCode < 500) request.opentelemetry().span?.setStatus({ code: SpanStatusCode.OK })
    done()
  })
  app.addHook('onClose', async () => {
    delete statementTracing.start
    const { flush } = shutdownTimeouts(app.config)
    await withTimeout(provider.shutdown(), flush).catch(err => app.log.warn({ err }, 'The last spans are lost'))
    for (const api of [trace, context, propagation]) api.disable()
  })
}

/** Sends spans to the collector. Logs when it is away, and when it is back. */
function createExporter (endpoint: string, log: Pick<FastifyBaseLogger, 'info' | 'warn'>) {
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/$/, '')}/v1/traces` })
  const send = exporter.export.bind(exporter)
  let isAway = false
  exporter.export = (spans, done) => send(spans, result => {
    const { error } = result
    if (error && !isAway) log.warn({ err: error }, 'Spans cannot be exported')
    if (!error && isAway) log.info('Spans are exported again')
    isAway = error !== undefined
    done(result)
  })
  return exporter
}
