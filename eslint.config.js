import neostandard, { resolveIgnoresFromGitignore } from 'neostandard'

export default [
  { ignores: ['client/schema.d.ts'] },
  ...neostandard({ ts: true, ignores: resolveIgnoresFromGitignore() }),
  // Whether a name exists in a browser, the type check of these files tells.
  { files: ['examples/spa/app/**'], rules: { 'no-undef': 'off' } },
  { rules: { '@stylistic/max-len': ['error', { code: 120, ignoreUrls: true }] } },
]
