// How long a step of an operation or of a stop may take, in seconds: `shutdownTimeouts` adds them up.

/** A hash of a password with its wait, on a machine that is not the fastest. */
export const HASHING_SECONDS = 5

/** One request to the identity provider, and all requests of one sign-in. */
export const PROVIDER_REQUEST_SECONDS = 5
export const PROVIDER_SECONDS = 3 * PROVIDER_REQUEST_SECONDS

/** The conversion of an uploaded picture, with its wait. Noise of 40 megapixels takes 6 s on one core. */
export const PICTURE_SECONDS = 15

/** A client that takes its response, once the operation has ended. */
export const RESPONSE_SECONDS = 5

/** The last spans, with tracing on. */
export const SPANS_SECONDS = 2

/** The embedded PostgreSQL, which is left as it is after that. */
export const RELEASE_SECONDS = 5

/** The lines of the log that wait, for example for a reader that takes nothing. */
export const LOG_FLUSH_SECONDS = 1

/** Work that took longer than its timeout. */
export class TimeoutError extends Error {
  override name = 'TimeoutError'

  constructor (seconds: number) {
    super(`no answer within ${seconds} s`)
  }
}

/** Resolves as the work does, or rejects with a TimeoutError after so many seconds. The work itself goes on. */
export async function withTimeout<T> (work: Promise<T>, seconds: number) {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new TimeoutError(seconds)), seconds * 1000)
  })
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}
