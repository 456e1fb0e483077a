/**
 * A failure that the contract names: the error handler answers with its status, `{message}` and, if it has any, its
 * further fields and its headers, and logs nothing.
 */
export class HttpError extends Error {
  override name = 'HttpError'
  readonly statusCode: number
  readonly fields: object
  readonly headers: Record<string, string | number>

  constructor (
    statusCode: number, message: string, fields: object = {}, headers: Record<string, string | number> = {}
  ) {
    super(message)
    this.statusCode = statusCode
    this.fields = fields
    this.headers = headers
  }
}
