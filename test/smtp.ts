import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'

import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

import type { Teardown } from './scope.ts'

/** Where a connection breaks. */
export const STAGES = [
  'connect', 'greeting', 'EHLO', 'MAIL FROM', 'RCPT TO', 'DATA', 'start of the message', 'final dot', 'response',
] as const
export type Stage = typeof STAGES[number]

/** Breaks the next connection at a stage, or is silent from there on. */
export interface Fault {
  stage: Stage
  silent?: boolean
}

/** An SMTP server, and every email that it has accepted. */
export interface MailServer {
  url: string
  port: number
  emails: { to: string[], raw: string }[]
  /** How often each email has arrived, by the id at the start of its Message-ID. */
  counts (): Map<string, number>
  parse (n: number): Promise<Email>
  /** Sets the fault of each connection that is made from now on. */
  fault: () => Fault | undefined
  /** Connections that were made. */
  connections: number
  /** The open connections. */
  open (): number
  /** Closes them. */
  hangUp (): void
  /** The stages at which connections were broken. */
  breaks: Stage[]
}

/** The Message-ID in the header of an email. */
export const messageIdOf = (raw: string) => /^Message-ID: <(.+)>\r?$/m.exec(raw)?.[1] ?? ''

/** Starts smtp-server on loopback, behind a proxy that breaks connections. */
export async function startMailServer (t: Teardown, options: SMTPServerOptions = {}): Promise<MailServer> {
  const emails: MailServer['emails'] = []
  const smtp = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    disableReverseLookup: true,
    // Clients keep their connections.
    closeTimeout: 10,
    onData (stream, { envelope }, callback) {
      text(stream).then(raw => {
        emails.push({ to: envelope.rcptTo.map(({ address }) => address), raw })
        callback()
      }, callback)
    },
    ...options,
  })
  // A client that vanishes is an error to it.
  smtp.on('error', () => {})
  const listening = smtp.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  t.teardown(() => new Promise<void>(resolve => smtp.close(resolve)))

  const sockets = new Set<Socket>()
  const { port: backend } = listening.address() as AddressInfo
  // Without Nagle's algorithm, which has each email take 40 ms.
  const proxy = createServer({ noDelay: true }, client => {
    sockets.add(client)
    client.on('close', () => sockets.delete(client))
    server.connections++
    relay(client, backend, server.fault(), stage => { server.breaks.push(stage) })
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  t.teardown(() => {
    server.hangUp()
    proxy.close()
  })

  const { port } = proxy.address() as AddressInfo
  const server: MailServer = {
    url: `smtp://127.0.0.1:${port}`,
    port,
    emails,
    counts () {
      const counts = new Map<string, number>()
      for (const { raw } of emails) {
        const [id] = messageIdOf(raw).split('.') as [string]
        counts.set(id, (counts.get(id) ?? 0) + 1)
      }
      return counts
    },
    parse: n => PostalMime.parse(emails[n]!.raw),
    fault: () => undefined,
    connections: 0,
    open: () => sockets.size,
    hangUp () { for (const socket of sockets) socket.destroy() },
    breaks: [],
  }
  return server
}

/** Forwards data in both directions until the fault. */
function relay (client: Socket, port: number, fault: Fault | undefined, onBreak: (stage: Stage) => void) {
  const backend = connect({ port, host: '127.0.0.1', noDelay: true })
  let isData = false
  let isComplete = false
  let isSilent = false
  client.on('error', () => {}).on('close', () => backend.destroy())
  backend.on('error', () => {}).on('close', () => { if (!isSilent) client.destroy() })

  /** Returns whether this is the stage of the fault. */
  function breaks (...stages: Stage[]) {
    if (!fault || !stages.includes(fault.stage)) return false
    onBreak(fault.stage)
    isSilent = fault.silent ?? false
    backend.destroy()
    if (!isSilent) client.destroy()
    return true
  }

  if (breaks('connect')) return
  backend.on('data', (chunk: Buffer) => {
    if (isSilent) return
    if (chunk.toString().startsWith('220') && breaks('greeting')) return
    if (isComplete && breaks('response')) return
    isData = chunk.toString().includes('354 ') || (isData && !isComplete)
    client.write(chunk)
  })
  client.on('data', (chunk: Buffer) => {
    if (isSilent) return
    const line = chunk.toString('latin1')
    if (!isData) {
      const stages = STAGES.filter(stage => line.includes(`${stage}:`) || line.split(/\r?\n/).includes(stage))
      if (line.startsWith('EHLO')) stages.push('EHLO')
      if (breaks(...stages)) return
    } else {
      if (breaks('start of the message')) return
      isComplete = line.endsWith('\r\n.\r\n')
      if (isComplete && breaks('final dot')) return
    }
    backend.write(chunk)
  })
}
