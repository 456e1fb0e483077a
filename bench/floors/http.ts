// A bare node:http server: sends the bytes of files from memory. ANSWERS is JSON: for each path a file and a type.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const { ANSWERS = '{}', PORT } = process.env

const answers = new Map(Object.entries(JSON.parse(ANSWERS) as Record<string, { file: string, type: string }>)
  .map(([path, { file, type }]) => [path, { body: readFileSync(file), type }]))

createServer(({ url }, response) => {
  const answer = answers.get(url!)
  response.writeHead(answer ? 200 : 404, { 'content-type': answer?.type ?? 'text/plain' })
  response.end(answer?.body)
}).listen(Number(PORT), '127.0.0.1')
