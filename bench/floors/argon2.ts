// Verifies passwords for as many seconds as its argument says, with nothing else to do, as many at once as proves best,
// and tells how many a second.
import argon2 from 'argon2'

import { hashPassword } from '#lib/passwords.js'

const PASSWORD = 'correct horse battery staple'

const seconds = Number(process.argv[2])
// It carries the service's parameters.
const hash = await hashPassword(PASSWORD)

/** How long each number at once has its turn, in seconds: the machine is not as fast in one second as in the next. */
const TURN = 1

/** Verifies so many at once for a turn. */
async function verify (concurrency: number) {
  const start = performance.now()
  let verified = 0
  await Promise.all(Array.from({ length: concurrency }, async () => {
    while (performance.now() - start < TURN * 1000) {
      await argon2.verify(hash, PASSWORD)
      verified++
    }
  }))
  return { verified, seconds: (performance.now() - start) / 1000 }
}

// The thread pool has four threads.
const totals = [2, 4].map(concurrency => ({ concurrency, verified: 0, seconds: 0 }))
for (let turn = 0; turn < seconds / TURN; turn++) {
  for (const total of totals) {
    const { verified, seconds } = await verify(total.concurrency)
    total.verified += verified
    total.seconds += seconds
  }
}
console.log(Math.max(...totals.map(({ verified, seconds }) => verified / seconds)))
