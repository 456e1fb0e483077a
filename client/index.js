import createFetchClient from 'openapi-fetch'

export function createClient ({ token, ...options } = {}) {
  const client = createFetchClient(options)
  client.use({
    onRequest ({ request }) {
      const shown = typeof token === 'function' ? token() : token
      if (shown) request.headers.set('authorization', `Bearer ${shown}`)
    },
  })
  return client
}
