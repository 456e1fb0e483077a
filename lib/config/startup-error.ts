/**
 * Prevents the service or a command from starting, for example an invalid variable, an unreachable database or a used
 * port. A person can fix the cause, so the message is printed without a stack trace.
 */
export class StartupError extends Error {
  override name = 'StartupError'
}
