import { shareConfig, shareOf } from '#lib/cluster/share.js'
import { testConfig } from '../../helper.ts'
import t from '../../suite.ts'

const shares = (count: number) => Array.from({ length: count }, (_share, index) => ({ index, count }))

t.test('The shares of all workers are the total, and differ by 1 at most', async t => {
  for (const [total, count, expected] of [
    [10, 1, [10]], [10, 2, [5, 5]], [10, 3, [4, 3, 3]], [11, 3, [4, 4, 3]], [3, 3, [1, 1, 1]],
  ] as const) {
    t.strictSame(shares(count).map(share => shareOf(total, share)), expected, `${total} among ${count}`)
  }
})

t.test('No worker has none', async t => {
  t.strictSame(shares(3).map(share => shareOf(2, share)), [1, 1, 1])
})

t.test('The limits of the whole service are divided, and nothing else', async t => {
  const config = testConfig({
    DATABASE_POOL_SIZE: '5', CACHE_SIZE_MB: '7', MAX_REQUESTS: '9', MAX_HELD_BYTES: '2000001', WORKERS: '2',
  })
  t.strictSame(shares(2).map(share => shareConfig(config, share)), [
    { ...config, DATABASE_POOL_SIZE: 3, CACHE_SIZE_MB: 4, MAX_REQUESTS: 5, MAX_HELD_BYTES: 1000001 },
    { ...config, DATABASE_POOL_SIZE: 2, CACHE_SIZE_MB: 3, MAX_REQUESTS: 4, MAX_HELD_BYTES: 1000000 },
  ])
})
