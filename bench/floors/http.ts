// A bare node:http server: sends the bytes of files from memory. ANSWERS is JSON: for each path a file and the headers,
// names and values in turn, which is how Node sends them fastest.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'

const { ANSWERS = '{}', PORT } = process.env

const answers = new Map(Object.entries(JSON.parse(ANSWERS) as Record<string, { file: string, headers: string[] }>)
  .map(([path, { file, headers }]) => [path, { body: readFileSync(file), headers }]))

createServer(({ url }, response) => {
  const answer = answers.get(url!)
  response.writeHead(answer ? 200 : 404, answer?.headers)
  response.end(answer?.body)
}).listen(Number(PORT), '127.0.0.1')
