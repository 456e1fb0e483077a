import type { Config } from '../config.ts'

/** The place of a worker among all of them. */
export interface Share {
  /** Counted from 0. */
  index: number
  count: number
}

/** The share of a single process: everything. */
export const ALL: Share = { index: 0, count: 1 }

/** The part of a total that a worker has: all of them together have the total, but none has less than 1. */
export function shareOf (total: number, { index, count }: Share) {
  return Math.max(1, Math.floor(total / count) + (index < total % count ? 1 : 0))
}

/** The variables that are limits of the whole service. */
const DIVIDED = ['DATABASE_POOL_SIZE', 'CACHE_SIZE_MB', 'MAX_REQUESTS', 'MAX_HELD_BYTES'] as const

/** The configuration of a worker: its share of the limits. */
export function shareConfig (config: Config, share: Share): Config {
  return { ...config, ...Object.fromEntries(DIVIDED.map(name => [name, shareOf(config[name], share)])) }
}
