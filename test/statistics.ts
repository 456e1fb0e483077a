/**
 * How long something may take, in milliseconds: so many times as long as without the fault, in this run. `least` is for
 * what takes hardly any time: the timers of the service, and the noise of a busy machine.
 */
export function allowance (usual: number, { times, least }: { times: number, least: number }) {
  return Math.max(least, times * (usual || 0))
}

/** The value that so many percent of the numbers do not exceed (nearest rank), NaN left out; NaN of none. */
export function percentile (values: number[], percent: number) {
  const sorted = values.filter(value => !Number.isNaN(value)).sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * percent / 100) - 1)] ?? NaN
}
