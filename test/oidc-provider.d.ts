// The parts of oidc-provider that the tests use. Its own types bring seventeen packages.
declare module 'oidc-provider' {
  import type { RequestListener, IncomingMessage, ServerResponse } from 'node:http'

  interface Options {
    interactions: { url (context: unknown, interaction: { uid: string }): string }
    findAccount (context: unknown, id: string): { accountId: string, claims (): Record<string, unknown> }
    pkce: { required (): boolean }
    [option: string]: unknown
  }

  export default class Provider {
    constructor (issuer: string, options: Options)
    on (event: 'server_error', listener: (context: unknown, error: Error) => void): void
    callback (): RequestListener
    Grant: new (grant: { accountId: string, clientId: string }) => {
      addOIDCScope (scope: string): void
      save (): Promise<string>
    }

    interactionFinished (request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
  }
}
