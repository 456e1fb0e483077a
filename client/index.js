import createFetchClient from 'openapi-fetch'

/** Shortest time after which `live` connects again if the service refuses the stream, in milliseconds. */
const RECONNECT_MS = 5000

export function createClient ({ token, ...options } = {}) {
  // Without `no-cache`, a browser may show a stored list right after a write.
  const client = createFetchClient({ cache: 'no-cache', ...options })
  client.use({
    onRequest ({ request }) {
      const shown = typeof token === 'function' ? token() : token
      if (shown) request.headers.set('authorization', `Bearer ${shown}`)
    },
  })
  return Object.assign(client, { live: (lists, onChange) => watch(options.baseUrl, lists, onChange) })
}

function watch (baseUrl = '', lists, onChange) {
  const query = new URLSearchParams(lists.map(list => ['list', list]))
  let source
  let timer
  open()
  return () => {
    clearTimeout(timer)
    source.close()
  }

  function open () {
    source = new globalThis.EventSource(`${baseUrl.replace(/\/$/, '')}/live?${query}`)
    source.onmessage = ({ data }) => onChange(JSON.parse(data))
    source.onerror = () => {
      // EventSource connects again after a lost connection, but not after a 503. Clients spread over twice the time.
      if (source.readyState === source.CLOSED) timer = setTimeout(open, RECONNECT_MS * (1 + Math.random()))
    }
  }
}
