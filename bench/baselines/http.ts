// A bare node:http server that sends the same response from memory to every request. RESPONSE is a file of JSON.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const { RESPONSE, PORT } = process.env
const { status, headers, body } = JSON.parse(readFileSync(RESPONSE!, 'utf8'))
const bytes = Buffer.from(body, 'base64')

createServer((_request, response) => {
  response.writeHead(status, headers).end(bytes)
}).listen(Number(PORT), '127.0.0.1')
