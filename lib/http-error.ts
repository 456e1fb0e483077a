/**
 * A failure that the contract names: the error handler answers with its status, `{message}` and its further fields, if
 * it has any, and logs nothing.
 */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly statusCode: number

  readonly fields: object

  constructor (statusCode: number, message: string, fields: object = {}) {
    super(message)
    this.statusCode = statusCode
    this.fields = fields
  }
}
