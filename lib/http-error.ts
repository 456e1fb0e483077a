/**
 * A failure that the contract names: the error handler answers with its status and `{message}`, and logs nothing.
 */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly statusCode: number

  constructor (statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}
