import type { Static } from '@sinclair/typebox'
import type { PendingQuery, Row, TransactionSql } from 'postgres'

import { consume } from '../../lib/auth/rate-limits.ts'
import type { CachedQuery } from '../../lib/cache/index.ts'
import type { Config } from '../../lib/config/config.ts'
import { type AnySql, expectOne, type Sql } from '../../lib/database/pools.ts'
import { assignments, avatarOf, bytesOf } from '../../lib/database/columns.ts'
import { type Attempt, createOnce, insertOnce } from '../../lib/database/idempotency.ts'
import type { Outbox } from '../../lib/email/outbox.ts'
import { HttpError } from '../../lib/http/errors.ts'
import type { create, read, update } from './schemas.ts'
import { TOO_MANY_DRAFTS, tooManyDrafts } from './schemas.ts'

type BlogWithAuthor = Static<typeof read.response[200]>['blog']
type NewBlog = Static<typeof create.body> & { authorId: string }

const columns = (sql: AnySql) => sql`
  blogs.id, title, content, image_url AS "imageUrl", status, author_id AS "authorId",
  iso8601(blogs.created_at) AS "createdAt", iso8601(blogs.updated_at) AS "updatedAt"
`

/** SQL query: the posts of a table with their authors, before a clause continues. */
const blogsOf = (sql: AnySql, picturesUrl: string | null, table = sql`blogs`) => sql`
  SELECT ${columns(sql)},
    json_build_object('firstName', first_name, 'lastName', last_name, 'avatar', ${avatarOf(sql, picturesUrl)}) AS author
  FROM ${table} AS blogs JOIN users ON users.id = author_id
`

/** A list of posts, read in batches of up to 8 MB. Reading 50 at once is a fifth faster, but takes up to 50 MB. */
const blogList = (rows: PendingQuery<Row[]>, keys?: PendingQuery<Row[]>): CachedQuery =>
  ({ list: { field: 'blogs', batchRows: 8, rows, keys } })

export const publishedBlogsQuery = (sql: Sql, picturesUrl: string | null) => blogList(sql`
  ${blogsOf(sql, picturesUrl)} WHERE status = 'PUBLISHED' ORDER BY blogs.created_at DESC, blogs.id
`)

/** A published post. Without a row if the post is not published. */
export const publishedBlogQuery = (sql: Sql, picturesUrl: string | null, id: string): CachedQuery => ({
  fields: sql`
    SELECT blog FROM (${blogsOf(sql, picturesUrl)} WHERE blogs.id = ${id} AND status = 'PUBLISHED') AS blog
  `,
})

/** Finds the post with this id: a list of one, or an empty list. */
export const findBlogs = (sql: AnySql, picturesUrl: string | null, id: string) => sql<BlogWithAuthor[]>`
  ${blogsOf(sql, picturesUrl)} WHERE blogs.id = ${id}
`

export const blogsOfAuthorQuery = (sql: Sql, authorId: string) => blogList(sql`
  SELECT ${columns(sql)} FROM blogs WHERE author_id = ${authorId} ORDER BY created_at DESC, id
`)

export const allBlogsQuery = (sql: Sql) => blogList(sql`
  SELECT ${columns(sql)}, json_build_object('firstName', first_name, 'lastName', last_name) AS author
  FROM blogs JOIN users ON users.id = author_id
  ORDER BY blogs.created_at DESC, blogs.id
`, sql`
  SELECT id, created_at AS at, ${bytesOf(sql, 'title', 'content', 'image_url')} AS size FROM blogs
`)

/** Adds a post, and only one if requests have the same key. */
export const insertBlog = (sql: Sql, picturesUrl: string | null, blog: NewBlog, attempt: Attempt | undefined) =>
  insertOnce(sql, attempt,
    sql => insertNewBlog(sql, picturesUrl, blog), (sql, id) => findBlogs(sql, picturesUrl, id))

/**
 * Drafts from a network within LIMIT_WINDOW may have the megabytes of this many accounts. Otherwise, a client that
 * signs up again and again could fill a disk of 10 GB in five minutes.
 */
const NETWORK_ACCOUNTS = 2

/**
 * Adds a draft, and only one if requests have the same key. Rejects with 413 if the posts of the author that are not
 * published would have more than DRAFT_MB_PER_USER, and with 429 after too many megabytes of drafts from this network.
 */
export function insertDraft (
  sql: Sql, picturesUrl: string | null, blog: NewBlog, attempt: Attempt | undefined, network: string,
  { DRAFT_MB_PER_USER: megabytes, LIMIT_WINDOW }: Pick<Config, 'DRAFT_MB_PER_USER' | 'LIMIT_WINDOW'>
) {
  return sql.begin(async sql => expectOne((await createOnce(sql, attempt, async () => {
    // Parallel submissions of an author wait here, so that the next statement counts all posts.
    await sql`SELECT FROM users WHERE id = ${blog.authorId} FOR NO KEY UPDATE`
    const bytes = sizeOfDraft(blog)
    if (bytes + await bytesOfDrafts(sql, blog.authorId) > megabytes * 1_000_000) {
      throw new HttpError(413, tooManyDrafts(megabytes))
    }
    await consume(sql, {
      name: 'drafts', key: network, max: NETWORK_ACCOUNTS * megabytes * 1000, message: TOO_MANY_DRAFTS,
    }, LIMIT_WINDOW, Math.ceil(bytes / 1000))
    return insertNewBlog(sql, picturesUrl, blog)
  }, ([id]) => findBlogs(sql, picturesUrl, id!))).rows)) as Promise<BlogWithAuthor>
}

const insertNewBlog = (
  sql: AnySql, picturesUrl: string | null, { title, content, imageUrl, status, authorId }: NewBlog
) => sql<BlogWithAuthor[]>`
  WITH created AS (
    INSERT INTO blogs (title, content, image_url, status, author_id)
    VALUES (${title}, ${content}, ${imageUrl ?? null}, ${status ?? 'DRAFT'}, ${authorId})
    RETURNING *
  )
  ${blogsOf(sql, picturesUrl, sql`created`)}
`

/** What a post counts besides its text: its row, its entries in indexes, and the time to sum up many posts. */
const POST_BYTES = 4000

/** Returns the bytes that a post counts while it is not published. */
const sizeOfDraft = ({ title, content, imageUrl }: NewBlog) =>
  [title, content, imageUrl ?? ''].reduce((sum, text) => sum + Buffer.byteLength(text), POST_BYTES)

/** Returns the bytes of an author's posts that are not published. Reads only the lengths of long texts. */
async function bytesOfDrafts (sql: TransactionSql, authorId: string) {
  const [{ bytes }] = await sql<[{ bytes: number }]>`
    SELECT coalesce(sum(${POST_BYTES}::integer + ${bytesOf(sql, 'title', 'content', 'image_url')}), 0)::float8 AS bytes
    FROM blogs WHERE author_id = ${authorId} AND status <> 'PUBLISHED'
  `
  return bytes
}

/** Changes the given fields. Enqueues an email to the author about a new status. */
export async function updateBlog (
  sql: Sql, outbox: Outbox, picturesUrl: string | null,
  { id, adminId, changes }: { id: string, adminId: string, changes: Static<typeof update.body> }
) {
  return expectOne(await sql<BlogWithAuthor[]>`
    WITH before AS (${lockBlog(sql, id)}), changed AS (
      UPDATE blogs SET
        ${assignments(sql, changes, ['title', 'content', 'imageUrl'])},
        status = coalesce(${changes.status ?? null}, blogs.status)
      FROM before WHERE blogs.id = before.id
      RETURNING blogs.*
    ), emailed AS (${enqueueDecision(sql, outbox, adminId)})
    ${blogsOf(sql, picturesUrl, sql`changed`)}
  `)
}

/**
 * SQL query: the post before a change, locked so that parallel changes see each other's result. The author, whom the
 * email refers to, is locked first, in the same order as in an erasure, to prevent deadlocks. The count makes
 * PostgreSQL lock the author first.
 */
const lockBlog = (sql: AnySql, id: string) => sql`
  WITH author AS (
    SELECT FROM users WHERE id = (SELECT author_id FROM blogs WHERE id = ${id}) FOR KEY SHARE
  )
  SELECT id, status FROM blogs WHERE id = ${id} AND (SELECT count(*) FROM author) >= 0 FOR NO KEY UPDATE
`

/** SQL statement that enqueues an email to the author if the status differs between `before` and `changed`. */
const enqueueDecision = (sql: Sql, outbox: Outbox, adminId: string) => outbox.enqueue('blog-decision', sql`
  SELECT author_id AS user_id, jsonb_build_object('blog', changed.id, 'status', changed.status) AS data, NULL AS key
  FROM changed JOIN before ON before.status <> changed.status
  WHERE changed.status IN ('PUBLISHED', 'ARCHIVED')
`, adminId)

export async function deleteBlog (sql: Sql, id: string) {
  expectOne(await sql`DELETE FROM blogs WHERE id = ${id} RETURNING id`)
}
