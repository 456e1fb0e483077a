import type { ClientOptions, FetchResponse, MaybeOptionalInit, Middleware } from 'openapi-fetch'

import type { components, paths } from './schema.d.ts'

export type { components, operations, paths } from './schema.d.ts'

/** The named schemas of the API description: `Schemas['Event']`. */
export type Schemas = components['schemas']

/**
 * `baseUrl` is the URL of the service, for example `https://api.example.org`. `cache` is `no-cache` by default, so that
 * browsers revalidate stored lists.
 */
export interface Options extends ClientOptions {
  /** The token, or a function that returns it. The client calls the function before each request. */
  token?: string | (() => string | null | undefined)
}

type Method = 'get' | 'put' | 'post' | 'delete'

type PathsWith<M extends Method> = {
  [Path in keyof paths]: paths[Path] extends { [K in M]: object } ? Path : never
}[keyof paths]

/** An operation whose body is a file. The type of the generator for it is `string`. */
type WithFile<Operation> = Operation extends { requestBody: { content: { 'image/jpeg': string } } }
  ? Omit<Operation, 'requestBody'> & { requestBody: { content: { 'image/jpeg': Blob } } }
  : Operation

type Init<Path extends keyof paths, M extends Method> =
  MaybeOptionalInit<{ [K in keyof paths[Path]]: WithFile<paths[Path][K]> }, M>

/**
 * Calls an operation. This type refuses unknown fields in a body, for example a misspelled optional field. The type of
 * openapi-fetch would accept them.
 */
type Call<M extends Method> = <Path extends PathsWith<M>>(
  path: Path, ...init: undefined extends Init<Path, M> ? [init?: Init<Path, M>] : [init: Init<Path, M>]
) => Promise<FetchResponse<paths[Path][M] & object, Init<Path, M>, `${string}/${string}`>>

/** The body of a list, if it has a cursor of the next page. */
type PageOf<Path extends PathsWith<'get'>> = paths[Path]['get'] extends {
  responses: { 200: { content: { 'application/json': infer Page extends { next: string | null } } } }
} ? Page : never

type PathsWithPages = {
  [Path in PathsWith<'get'>]: [PageOf<Path>] extends [never] ? never : Path
}[PathsWith<'get'>]

type PublicPath = 'agenda' | 'blogs' | 'club-pages' | 'clubs' | 'events' | 'mentors' | 'testimonials'

/** A public list with its query, as in `client.live`. */
export type PublicList = `/${PublicPath}${'' | `?${string}`}`

/**
 * A function for each method of HTTP, for example `client.GET('/events', { params: { query: { limit: '3' } } })`. It
 * resolves to `{ data, error, response }`: `data` is the body of a success, and `error` the body of any other response.
 * A text, such as CSV or a calendar, is a string. An error that is not JSON, for example of a proxy, gets a `message`.
 * The promise rejects if the service cannot be reached, for example offline.
 */
export interface Client {
  GET: Call<'get'>
  PUT: Call<'put'>
  POST: Call<'post'>
  DELETE: Call<'delete'>
  /**
   * Gets the pages of a list with a cursor, one after the other:
   * `for await (const { events } of client.pages('/agenda'))`. Throws an error with the message of a failure.
   */
  pages<Path extends PathsWithPages> (path: Path, init?: Init<Path, 'get'>): AsyncGenerator<PageOf<Path>, void, void>
  /**
   * Watches public lists, at most eight. Calls `onChange` for each list when the stream opens and when the list
   * changes; then get the list. Connects again by itself. Needs a browser, or a global `EventSource`. Returns a
   * function that stops it.
   */
  live<List extends PublicList> (
    lists: readonly List[], onChange: (change: { list: List, etag: string }) => void
  ): () => void
  /** Adds middleware of openapi-fetch. */
  use (...middleware: Middleware[]): void
  /** Removes middleware. */
  eject (...middleware: Middleware[]): void
}

/** Makes a client. */
export function createClient (options?: Options): Client
