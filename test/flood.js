// Sends sign-ins until it is killed: `flood.js URL ADDRESS CONNECTIONS BODY`. Prints the status of each response.
import { Agent, request } from 'node:http'

const [url, localAddress, connections, body] = process.argv.slice(2)
const agent = new Agent({ keepAlive: true, localAddress })

function signIn () {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const sent = request(`${url}/auth/login`, { method: 'POST', agent, headers }, response => {
    console.log(response.statusCode)
    response.resume().on('end', signIn)
  })
  sent.on('error', signIn).end(body)
}

for (let n = 0; n < Number(connections); n++) signIn()
