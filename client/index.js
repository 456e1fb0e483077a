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
  const { POST } = client
  return Object.assign(client, {
    POST: (path, init) => POST(path, init?.body instanceof Blob ? sendFile(init) : init),
    live: (lists, onChange) => watch(options.baseUrl, lists, onChange),
  })
}

/** Sends a file as it is. openapi-fetch would convert it to JSON. */
function sendFile ({ headers, ...init }) {
  const { type } = init.body
  return { bodySerializer: file => file, ...init, headers: { 'content-type': type, ...headers } }
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
