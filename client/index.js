import createFetchClient from 'openapi-fetch'

/** Shortest time in which `live` expects a stream to open, in milliseconds. It doubles with each attempt. */
const OPEN_MS = 5000

/** Shortest silence after which `live` connects again, in milliseconds. The service sends a ping every 15 seconds. */
const SILENCE_MS = 35_000

export function createClient ({ token, ...options } = {}) {
  // Without `no-cache`, a browser may show a stored list right after a write.
  const client = createFetchClient({ cache: 'no-cache', ...options })
  client.use({
    onRequest ({ request }) {
      const shown = typeof token === 'function' ? token() : token
      if (shown) request.headers.set('authorization', `Bearer ${shown}`)
    },
    async onResponse ({ response, options }) {
      const [type] = (response.headers.get('content-type') ?? '').split(';')
      // A Wi-Fi with a sign-in page sends that with status 200.
      if (!response.ok || type === 'text/html') return withMessage(response, type)
      const isText = type.startsWith('text/') || type.endsWith('xml')
      if (isText && options.parseAs === 'json') return jsonOf(await response.text(), response)
    },
  })
  const { GET, POST } = client
  return Object.assign(client, {
    POST: (path, init) => POST(path, init?.body instanceof Blob ? sendFile(init) : init),
    pages: (path, init) => pagesOf(GET, path, init),
    live: (lists, onChange) => watch(options.baseUrl, lists, onChange),
  })
}

/** Sends a file as it is. openapi-fetch would convert it to JSON. */
function sendFile ({ headers, ...init }) {
  const { type } = init.body
  return { bodySerializer: file => file, ...init, headers: { 'content-type': type, ...headers } }
}

/** Returns a response with this body as JSON, because openapi-fetch parses the body of every response. */
function jsonOf (body, { status, statusText }) {
  return Response.json(body, { status, statusText })
}

/** Gives a failure a message if it has none, for example the HTML of a proxy. */
async function withMessage (response, type) {
  const text = await response.clone().text()
  try {
    if (typeof JSON.parse(text).message === 'string') return response
  } catch {}
  const message = type === 'text/plain' && text ? text : `The service is not available (status ${response.status})`
  return jsonOf({ message }, response.ok ? { status: 502, statusText: 'Bad Gateway' } : response)
}

async function * pagesOf (get, path, { params, ...init } = {}) {
  let cursor = params?.query?.cursor
  do {
    const { data, error } = await get(path, { ...init, params: { ...params, query: { ...params?.query, cursor } } })
    if (error) throw new Error(error.message)
    yield data
    cursor = data.next
  } while (cursor)
}

function watch (baseUrl = '', lists, onChange) {
  const query = new URLSearchParams(lists.map(list => ['list', list]))
  let source
  let timer
  let patience = OPEN_MS
  open()
  return close

  function close () {
    clearTimeout(timer)
    source.close()
  }

  function open () {
    source = new globalThis.EventSource(`${baseUrl.replace(/\/$/, '')}/live?${query}`)
    source.onopen = expectMore
    source.onmessage = ({ data }) => {
      expectMore()
      onChange(JSON.parse(data))
    }
    source.addEventListener('ping', expectMore)
    source.onerror = () => {
      // EventSource connects again after a lost connection, but not after a 503.
      if (source.readyState === source.CLOSED) reopenAfter(patience)
    }
    // The browser may use an idle connection that has gone silent as well.
    reopenAfter(patience)
    patience = Math.min(2 * patience, SILENCE_MS)
  }

  /** A connection can go silent without an error. Firefox also closes a stream if a link downloads a file. */
  function expectMore () {
    patience = OPEN_MS
    reopenAfter(SILENCE_MS)
  }

  function reopenAfter (milliseconds) {
    clearTimeout(timer)
    // Clients spread, because a proxy may silence all of them at once.
    timer = setTimeout(() => {
      source.close()
      open()
    }, milliseconds * (1 + Math.random() / 4))
  }
}
