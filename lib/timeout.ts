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
