import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'

/** Sends spans to OTEL_EXPORTER_OTLP_ENDPOINT. Loads OpenTelemetry only if this variable is set. */
const tracing: FastifyPluginAsync = async app => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT } = app.config
  if (!OTEL_EXPORTER_OTLP_ENDPOINT || app.describeOnly) return
  const { startTracing } = await import('../lib/opentelemetry.ts')
  await startTracing(app, OTEL_EXPORTER_OTLP_ENDPOINT)
}

export default fp(tracing, { name: 'tracing' })
