import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { loadConverter } from '#lib/pictures/load-converter.js'
import t from '../../suite.ts'

t.test('A processor without x86-64-v2 does not load the library, which would end the process', async t => {
  const file = join(t.testdir(), 'cpuinfo')
  // Of the type kvm64
  await writeFile(file, 'processor\t: 0\nflags\t\t: fpu mmx sse sse2 syscall nx lm pni cx16 x2apic hypervisor\n')
  await t.rejects(loadConverter(file), { message: /^the processor lacks ssse3, sse4_1, sse4_2, popcnt\. In a virtual/ })
  await writeFile(file, 'processor\t: 0\nFeatures\t: fp asimd\n')
  t.type(await loadConverter(file), Function, 'another kind of processor')
  t.type(await loadConverter(join(t.testdirName, 'missing')), Function, 'another operating system')
})
