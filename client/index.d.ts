import type { ClientOptions, FetchResponse, MaybeOptionalInit, Middleware } from 'openapi-fetch'

import type { components, paths } from './schema.d.ts'

export type { components, operations, paths } from './schema.d.ts'

/** The named schemas of the API description: `Schemas['Event']`. */
export type Schemas = components['schemas']

/**
 * `baseUrl` is where the service is: `https://api.example.org`. `cache` is `no-cache` by default, so that browsers
 * revalidate lists that they have stored.
 */
export interface Options extends ClientOptions {
  /** The application token, or what returns it: asked before every request, so that it may come and go. */
  token?: string | (() => string | null | undefined)
}

type Method = 'get' | 'put' | 'post' | 'delete'

type PathsWith<M extends Method> = {
  [Path in keyof paths]: paths[Path] extends { [K in M]: object } ? Path : never
}[keyof paths]

type Init<Path extends keyof paths, M extends Method> = MaybeOptionalInit<paths[Path], M>

/**
 * Calls an operation. openapi-fetch would do for a type, but lets a request have any field beside those described, and
 * so a wrong name for an optional one.
 */
type Call<M extends Method> = <Path extends PathsWith<M>>(
  path: Path, ...init: undefined extends Init<Path, M> ? [init?: Init<Path, M>] : [init: Init<Path, M>]
) => Promise<FetchResponse<paths[Path][M] & object, Init<Path, M>, `${string}/${string}`>>

/**
 * One method for each of HTTP's: `client.GET('/events', { params: { query: { limit: '3' } } })`. It resolves to
 * `{ data, error, response }`: `data` of a success, else `error`, which is what the service answered. It rejects when
 * there is no answer at all.
 */
export interface Client {
  GET: Call<'get'>
  PUT: Call<'put'>
  POST: Call<'post'>
  DELETE: Call<'delete'>
  /** Adds middleware of openapi-fetch. */
  use (...middleware: Middleware[]): void
  /** Takes it away again. */
  eject (...middleware: Middleware[]): void
}

/** Makes a client. */
export function createClient (options?: Options): Client
