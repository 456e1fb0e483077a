import { readFile, writeFile } from 'node:fs/promises'

/** What Linux counts a process's time in: USER_HZ. */
const TICKS_PER_SECOND = 100

/** The processor time of a process so far, all its threads together, in seconds. */
export async function cpuSeconds (pid: number) {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // What is in parentheses is the program's name; utime and stime are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** The resident memory of a process now and at its highest since the last `forgetPeak`, in megabytes of 10^6 bytes. */
export async function residentMemory (pid: number) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const megabytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)![1]) * 1024 / 1e6
  return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') }
}

export async function forgetPeak (pid: number) {
  await writeFile(`/proc/${pid}/clear_refs`, '5')
}
