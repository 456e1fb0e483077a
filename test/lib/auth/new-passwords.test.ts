import { dictionary } from '@zxcvbn-ts/language-common'

import { assertStrongPassword } from '#lib/auth/new-passwords.js'
import t from '../../suite.ts'

const isTaken = async (password: string) =>
  assertStrongPassword('password', password, 'ada@example.org').then(() => true, ({ message }) => message)

t.test('Common passwords, repetitions, sequences, dates and keys side by side are refused', async t => {
  const common = [
    '88888888', '87654321', 'aaaaaaaa', '69696969', '12341234', '123123123', '01234567', 'abcdefgh', '11111980',
    'poiuytrewq', 'Password1', 'passw0rd', 'trustno1!', 'Summer2024', 'x Ada@Example.org',
    ...dictionary['passwords-common'].filter((_password, rank) => rank % 500 === 0),
  ]
  for (const password of common) {
    t.equal(await isTaken(password), 'Validation error', password)
    t.equal(await isTaken(password.replace(/^.{1,3}/, start => start.toUpperCase())), 'Validation error', password)
  }
})

t.test('Others are taken, as are all that are long', async t => {
  for (const password of ['correct horse', 'q7+Lm2xR', 'x9-kelp-tuba', 'a'.repeat(21)]) {
    t.equal(await isTaken(password), true, password)
  }
})

t.test('A password of signs that look like letters is checked quickly', async t => {
  const signs = '4@8({[</369&#!1/|0$5'
  await isTaken(signs)
  const start = performance.now()
  for (let n = 0; n < 50; n++) await isTaken(signs)
  // Without a limit, it takes 2,200 ms.
  t.ok(performance.now() - start < 500)
})
