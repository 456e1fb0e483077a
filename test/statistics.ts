/**
 * The limit for a duration under a fault, in milliseconds: a multiple of the usual duration in this run. `least` covers
 * durations near zero: they are dominated by timers and by the noise of a busy machine.
 */
export function allowance (usual: number, { times, least }: { times: number, least: number }) {
  return Math.max(least, times * (usual || 0))
}

/** The percentile of the numbers by nearest rank. Ignores NaN; returns NaN for an empty list. */
export function percentile (values: number[], percent: number) {
  const sorted = values.filter(value => !Number.isNaN(value)).sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * percent / 100) - 1)] ?? NaN
}
