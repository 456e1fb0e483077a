import fp from 'fastify-plugin'

/** Sends spans to OTEL_EXPORTER_OTLP_ENDPOINT. Loads OpenTelemetry only if this variable is set. */
export default fp(async app => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT } = app.config
  if (!OTEL_EXPORTER_OTLP_ENDPOINT || app.describeOnly) return
  const { startTracing } = await load()
  await startTracing(app, OTEL_EXPORTER_OTLP_ENDPOINT)
}, { name: 'tracing' })

// Inside an "export default", the compiler would not rewrite the extension of the file.
const load = () => import('../lib/opentelemetry.ts')
