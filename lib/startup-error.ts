/**
 * Something that a person can mend keeps the service or a command from starting: a wrong variable, a database out of
 * reach, a taken port. Its message is the one line that is shown; there is no stack trace to read.
 */
export class StartupError extends Error {
  override name = 'StartupError'
}
