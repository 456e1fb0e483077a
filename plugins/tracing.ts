import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'

import { VERSION } from '../lib/config/config.ts'

/** Sends spans to OTEL_EXPORTER_OTLP_ENDPOINT. Loads OpenTelemetry only if this variable is set. */
const tracing: FastifyPluginAsync = async app => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT } = app.config
  if (!OTEL_EXPORTER_OTLP_ENDPOINT || app.describeOnly) return
  const { SpanStatusCode } = await import('@opentelemetry/api')
  const { startOpenTelemetry } = await import('../lib/http/opentelemetry.ts')
  const { plugin, stop } = startOpenTelemetry(OTEL_EXPORTER_OTLP_ENDPOINT, VERSION, app.log)

  app.decorateRequest('span', null)
  await app.register(plugin)
  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    // The instrumentation marks every error as a failure of the service, but these are errors of the client.
    if (statusCode >= 400 && statusCode < 500) request.opentelemetry().span?.setStatus({ code: SpanStatusCode.OK })
    done()
  })
  app.addHook('onClose', stop)
}

export default fp(tracing, { name: 'tracing' })
