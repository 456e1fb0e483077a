import createFetchClient from 'openapi-fetch'

export function createClient ({ token, ...options } = {}) {
  // By its Cache-Control, a browser may show a stored list right after a write. With `no-cache` it asks, for a 304.
  const client = createFetchClient({ cache: 'no-cache', ...options })
  client.use({
    onRequest ({ request }) {
      const shown = typeof token === 'function' ? token() : token
      if (shown) request.headers.set('authorization', `Bearer ${shown}`)
    },
  })
  return client
}
