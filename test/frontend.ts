import { serve } from './provider.ts'
import type { Teardown } from './scope.ts'

/**
 * Serves a browser app on its own origin: a page that links to the sign-in of this service, and the page that the
 * sign-in returns to.
 */
export function serveFrontend (t: Teardown, service: string, host: string) {
  const pages: Record<string, string> = {
    '/': `<title>Welcome</title><a href="${service}/auth/google/start?redirect=/events%3Fpage=2">Sign in</a>`,
    '/auth/callback': `<title>Signing in</title><h1></h1><p></p>
      <script type="module">
        const query = new URLSearchParams(location.search)
        const headers = { authorization: 'Bearer ' + query.get('token') }
        const response = await fetch('${service}/auth/me', { headers })
        const { user } = await response.json()
        document.querySelector('p').textContent = query.get('to')
        document.querySelector('h1').textContent = 'Hello ' + user.firstName + ' ' + user.lastName
      </script>`,
  }
  return serve(t, (request, response) => {
    const page = pages[request.url!.split('?', 1)[0]!]
    response.writeHead(page ? 200 : 404, { 'content-type': 'text/html' }).end(`<!doctype html>${page}`)
  }, host)
}
