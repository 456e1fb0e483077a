/** Something that took longer than it may. */
export class DeadlineError extends Error {
  override name = 'DeadlineError'

  constructor (seconds: number) {
    super(`no answer within ${seconds} s`)
  }
}

/** What the work results in, or a DeadlineError after so many seconds; then the work goes on for nobody. */
export async function withinDeadline<T> (work: Promise<T>, seconds: number, onLate?: (error: DeadlineError) => void) {
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new DeadlineError(seconds)
      onLate?.(error)
      reject(error)
    }, seconds * 1000)
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}
