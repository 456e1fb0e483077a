import neostandard, { resolveIgnoresFromGitignore } from 'neostandard'

export default [
  { ignores: ['client/schema.d.ts'] },
  ...neostandard({ ts: true, ignores: resolveIgnoresFromGitignore() }),
  { rules: { '@stylistic/max-len': ['error', { code: 120, ignoreUrls: true }] } },
]
