import createFetchClient from 'openapi-fetch'

export function createClient ({ token, ...options } = {}) {
  // Without `no-cache`, a browser may show a stored list right after a write.
  const client = createFetchClient({ cache: 'no-cache', ...options })
  client.use({
    onRequest ({ request }) {
      const shown = typeof token === 'function' ? token() : token
      if (shown) request.headers.set('authorization', `Bearer ${shown}`)
    },
  })
  return client
}
