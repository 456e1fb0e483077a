import cors from '@fastify/cors'
import fp from 'fastify-plugin'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** `false` if the route sets the headers of CORS. An option of @fastify/cors that its types lack. */
    cors?: false
  }
}

/** Origins on this machine with any port: `localhost` with its subdomains, 127.0.0.0/8 and `[::1]`. */
const LOOPBACK = /^https?:\/\/(([a-z\d-]+\.)*localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/

/**
 * Allows only browser apps of the origins in FRONTEND_URL to read responses, including requests with credentials.
 * Outside production, also allows apps on this machine.
 */
export default fp(async app => {
  const { FRONTEND_URL, NODE_ENV } = app.config
  const onLoopback = NODE_ENV !== 'production'
  if (FRONTEND_URL.length === 0 && !onLoopback) return
  const isAllowed = (origin: string) => FRONTEND_URL.includes(origin) || (onLoopback && LOOPBACK.test(origin))
  await app.register(cors, {
    // `false` omits the headers, and OPTIONS requests get a 404.
    origin: (origin, callback) => callback(null, isAllowed(origin ?? '') && origin!),
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    credentials: true,
    exposedHeaders: ['Retry-After', 'ETag', 'X-Request-Id', 'Content-Disposition', 'Date'],
    maxAge: 600,
    // Prevents a plain-text error for OPTIONS requests without Access-Control-Request-Method.
    strictPreflight: false,
  })
}, { name: 'cors' })
