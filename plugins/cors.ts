import cors from '@fastify/cors'
import fp from 'fastify-plugin'

/** Lets browser apps of the origins in FRONTEND_URL, and no others, read responses. */
export default fp(async app => {
  const origin = app.config.FRONTEND_URL
  if (origin.length === 0) return
  await app.register(cors, {
    origin,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    exposedHeaders: ['Retry-After', 'ETag', 'X-Request-Id'],
    maxAge: 600,
    // OPTIONS that asks for nothing allows nothing, instead of being refused in plain text.
    strictPreflight: false,
  })
}, { name: 'cors' })
