// Verifies passwords for so many seconds, so many at once, with nothing else to do, and tells how many a second.
import argon2 from 'argon2'

import { hashPassword } from '#lib/passwords.js'

const PASSWORD = 'correct horse battery staple'

const [seconds, atOnce] = process.argv.slice(2).map(Number) as [number, number]
// It carries the service's parameters.
const hash = await hashPassword(PASSWORD)

const start = performance.now()
let verified = 0
await Promise.all(Array.from({ length: atOnce }, async () => {
  while (performance.now() - start < seconds * 1000) {
    await argon2.verify(hash, PASSWORD)
    verified++
  }
}))
console.log(verified / (performance.now() - start) * 1000)
