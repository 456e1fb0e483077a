import { FastifyOtelInstrumentation } from '@fastify/otel'
import { context, propagation, trace } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import type { FastifyBaseLogger } from 'fastify'

import { SPANS_SECONDS, withTimeout } from '../config/timeout.ts'
import { pathOf } from './logger.ts'

type Log = Pick<FastifyBaseLogger, 'info' | 'warn'>

/** Probes and scrapes come all the time: their spans would only hide others. */
const UNTRACED = new Set(['/livez', '/readyz', '/metrics'])

/**
 * Turns on OpenTelemetry for this version of the service: sends spans of requests in batches to the collector at
 * `endpoint` (OTLP over HTTP, as JSON). The SDK reads the other OpenTelemetry variables from the environment, for
 * example the sampler and the batch size. If the collector is unavailable, spans are lost and one line is logged.
 * `stop` sends the remaining spans. A process has one tracer.
 */
export function startOpenTelemetry (endpoint: string, version: string, log: Log) {
  const provider = new NodeTracerProvider({
    // OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME take precedence.
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'community-platform', 'service.version': version }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(createExporter(endpoint, log))],
  })
  provider.register()

  const instrumentation = new FastifyOtelInstrumentation({
    ignorePaths: ({ url }) => UNTRACED.has(pathOf(url)),
    // One span per request, without spans for hooks and without stack traces, which are in the log.
    instrumentHooks: false,
    instrumentHandler: false,
    recordExceptions: false,
    requestHook (span, request) {
      const { method, routeOptions: { url: route }, protocol } = request
      span.updateName(route ? `${method} ${route}` : method)
      // The instrumentation would include the query, which may contain the code of a sign-in.
      span.setAttributes({ 'url.path': pathOf(request.url), 'url.scheme': protocol })
      const { traceId, spanId } = span.spanContext()
      request.span = { traceId, spanId }
    },
  })
  instrumentation.setTracerProvider(provider)

  return {
    plugin: instrumentation.plugin(),
    async stop () {
      await withTimeout(provider.shutdown(), SPANS_SECONDS).catch(err => log.warn({ err }, 'The last spans were lost'))
      for (const api of [trace, context, propagation]) api.disable()
    },
  }
}

/** Creates an exporter that logs when the collector becomes unavailable and available again. */
function createExporter (endpoint: string, log: Log) {
  const exporter = new OTLPTraceExporter({ url: `${endpoint}/v1/traces` })
  const send = exporter.export.bind(exporter)
  let isAway = false
  exporter.export = (spans, done) => send(spans, result => {
    const { error } = result
    if (error && !isAway) log.warn({ err: error }, 'Cannot export spans')
    if (!error && isAway) log.info('Exporting spans works again')
    isAway = error !== undefined
    done(result)
  })
  return exporter
}
