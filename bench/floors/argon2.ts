// Verifies passwords for as many seconds as its argument says, with nothing else to do, as many at once as proves best,
// and tells how many a second.
import argon2 from 'argon2'

import { hashPassword } from '#lib/passwords.js'

const PASSWORD = 'correct horse battery staple'

const seconds = Number(process.argv[2])
// It carries the service's parameters.
const hash = await hashPassword(PASSWORD)

/** Verifications a second, so many at once. */
async function rate (concurrency: number) {
  const start = performance.now()
  let verified = 0
  await Promise.all(Array.from({ length: concurrency }, async () => {
    while (performance.now() - start < seconds * 1000) {
      await argon2.verify(hash, PASSWORD)
      verified++
    }
  }))
  return verified / (performance.now() - start) * 1000
}

// The thread pool has four threads.
const rates = []
for (const concurrency of [2, 4]) rates.push(await rate(concurrency))
console.log(Math.max(...rates))
