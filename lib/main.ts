import { StartupError } from './startup-error.ts'

/**
 * Runs an entry point. What a person can mend ends with its one line on standard error and exit code 1; anything else
 * is a defect, and ends with everything that is known about it.
 */
export async function runMain (main: () => Promise<void>) {
  try {
    await main()
  } catch (error) {
    console.error(error instanceof StartupError ? error.message : error)
    process.exitCode = 1
  }
}
