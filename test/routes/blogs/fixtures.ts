import { createHmac } from 'node:crypto'

import t from 'tap'

import { build, person, type Person } from '../../helper.ts'

export const app = await build(t)

export type Method = Parameters<Person['inject']>[0]
export type Fields = Record<string, unknown>

export const STATUSES = ['DRAFT', 'PUBLISHED', 'ARCHIVED']
export const SCALARS = ['authorId', 'content', 'createdAt', 'id', 'imageUrl', 'status', 'title', 'updatedAt']
export const PAST = '2020-02-03T04:05:06.780Z'
export const BODY = { title: 'On testing', content: 'As long as a blog must be' }

export const admin = await person(app, 'ADMIN')

/** Inserts a blog. Returns its own columns as a response has them. */
export async function store (author: { id: string }, fields: Fields = {}) {
  const row = { ...BODY, author_id: author.id, ...fields }
  const [blog] = await app.sql`
    INSERT INTO blogs ${app.sql(row)}
    RETURNING
      id, title, content, image_url AS "imageUrl", status, author_id AS "authorId",
      created_at AS "createdAt", updated_at AS "updatedAt"
  `
  return JSON.parse(JSON.stringify(blog)) as { [scalar: string]: string | null, id: string }
}

export async function stored (id: string) {
  const [row] = await app.sql`SELECT * FROM blogs WHERE id = ${id}`
  return row
}

/** Signs any claims. */
export function forge (claims: Fields, alg = 'HS256', secret = 'a secret of somebody else, long enough') {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ alg, typ: 'JWT' })}.${part(claims)}`
  return `${signed}.${alg === 'none' ? '' : createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** A valid token with these claims; `undefined` removes one. */
export const sign = (claims: Fields) => app.jwt.sign(claims as { sub: string, role: 'STUDENT' })

/** Values at both bounds of each rule. */
export const RULES: [string, unknown[], unknown[]][] = [
  ['title',
    ['abc', '   ', '😀a', 'x'.repeat(10_000)],
    ['', 'ab', '😀', 'a\0bc', '\0\0\0', null, 123, true, ['abc'], {}]],
  ['content',
    ['x'.repeat(20), ' '.repeat(20), '😀'.repeat(10)],
    ['', 'x'.repeat(19), `${'😀'.repeat(9)}x`, `${'x'.repeat(20)}\0`, null, 1e20, ['x'.repeat(20)], {}]],
  ['imageUrl',
    ['https://example.org/a.png', 'HTTP://EXAMPLE.ORG', 'data:,x', 'x:y', ' https://example.org/ü ?q#f '],
    ['', 'example.org/a.png', '/a.png', '//example.org/a.png', 'https://', 'https://example.org/\0', null, 5, [], {}]],
]
export const STATUS_RULE: typeof RULES[number] = ['status',
  STATUSES, ['draft', '', 'DELETED', ' DRAFT', null, 5, ['DRAFT'], {}]]
