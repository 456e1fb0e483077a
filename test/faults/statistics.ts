/** The value that so many percent of the values do not exceed (nearest rank); NaN of no values. */
export function percentile (values: number[], percent: number) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * percent / 100) - 1)] ?? NaN
}
