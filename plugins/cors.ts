import cors from '@fastify/cors'
import fp from 'fastify-plugin'

/** Every origin on this machine, whatever its port: `localhost` with its subdomains, 127.0.0.0/8 and `[::1]`. */
const LOOPBACK = /^https?:\/\/(([a-z\d-]+\.)*localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/

/**
 * Lets browser apps of the origins in FRONTEND_URL, and no others, read responses, also of requests with credentials.
 * Outside production, apps on this machine may do so without a setting.
 */
export default fp(async app => {
  const { FRONTEND_URL, NODE_ENV } = app.config
  const onLoopback = NODE_ENV !== 'production'
  if (FRONTEND_URL.length === 0 && !onLoopback) return
  const isAllowed = (origin: string) => FRONTEND_URL.includes(origin) || (onLoopback && LOOPBACK.test(origin))
  await app.register(cors, {
    // `false` adds no header, and leaves OPTIONS to the 404.
    origin: (origin, callback) => callback(null, isAllowed(origin ?? '') && origin!),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    credentials: true,
    exposedHeaders: ['Retry-After', 'ETag', 'X-Request-Id', 'Content-Disposition'],
    maxAge: 600,
    // OPTIONS without a method to ask for is not refused in plain text.
    strictPreflight: false,
  })
}, { name: 'cors' })
