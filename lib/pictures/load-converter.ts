import { readFile } from 'node:fs/promises'

/** The processor features of x86-64-v2 by their names in /proc/cpuinfo. libvips uses them without a check. */
const FEATURES = ['pni', 'ssse3', 'sse4_1', 'sse4_2', 'popcnt']

/**
 * Loads the conversion of pictures. Rejects with the reason if this machine cannot run it. On a processor without
 * x86-64-v2, such as kvm64 of Proxmox, the library would end the process by SIGILL.
 */
export async function loadConverter (cpuInfo = '/proc/cpuinfo') {
  const [, flags = FEATURES.join(' ')] = /^flags\s*:(.*)$/m.exec(await readFile(cpuInfo, 'utf8').catch(() => '')) ?? []
  const missing = FEATURES.filter(feature => !flags.split(' ').includes(feature))
  if (missing.length > 0) {
    const advice = 'In a virtual machine, choose the processor type x86-64-v2 or host'
    throw new Error(`the processor lacks ${missing.join(', ')}. ${advice}`)
  }
  const { convertPicture } = await import('./convert.ts')
  return convertPicture
}
