import fp from 'fastify-plugin'

/** Sends spans to OTEL_EXPORTER_OTLP_ENDPOINT. Without one, nothing of OpenTelemetry is even loaded. */
export default fp(async app => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT } = app.config
  if (!OTEL_EXPORTER_OTLP_ENDPOINT || app.describeOnly) return
  const { startTracing } = await load()
  await startTracing(app, OTEL_EXPORTER_OTLP_ENDPOINT)
}, { name: 'tracing' })

// Inside of an "export default", the compiler leaves the name of the file as it is.
const load = () => import('../lib/opentelemetry.ts')
