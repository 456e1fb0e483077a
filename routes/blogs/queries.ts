import type { Static } from '@sinclair/typebox'

import type { Body, CachedQuery } from '../../lib/cache/snapshot-cache.ts'
import type { Sql } from '../../lib/database.ts'
import { only } from '../../lib/rows.ts'
import type { create, listAll, listMine, listPublished, read, update } from './schemas.ts'

type Blog = Static<typeof listMine.response[200]>['blogs'][number]
type BlogWithAuthor = Static<typeof read.response[200]>['blog']
type NewBlog = Static<typeof create.body> & { authorId: string }

const scalars = (sql: Sql) => sql`
  blogs.id, title, content, image_url AS "imageUrl", status, author_id AS "authorId",
  iso8601(blogs.created_at) AS "createdAt", iso8601(blogs.updated_at) AS "updatedAt"
`

const author = (sql: Sql) => sql`
  json_build_object('firstName', first_name, 'lastName', last_name, 'avatar', avatar) AS author
`

const authorName = (sql: Sql) => sql`
  json_build_object('firstName', first_name, 'lastName', last_name) AS author
`

export const listPublishedBlogs = (sql: Sql): CachedQuery<Body<typeof listPublished>> => ({
  list: ['blogs', sql`
    SELECT ${scalars(sql)}, ${author(sql)}
    FROM blogs JOIN users ON users.id = author_id
    WHERE status = 'PUBLISHED'
    ORDER BY blogs.created_at DESC, blogs.id
  `],
})

/** The blog, if it is published. */
export const readPublishedBlog = (sql: Sql, id: string): CachedQuery<Body<typeof read>> => ({
  fields: sql`
    SELECT blog
    FROM (
      SELECT ${scalars(sql)}, ${author(sql)}
      FROM blogs JOIN users ON users.id = author_id
      WHERE blogs.id = ${id} AND status = 'PUBLISHED'
    ) AS blog
  `,
})

export async function findBlog (sql: Sql, id: string) {
  const [blog] = await sql<BlogWithAuthor[]>`
    SELECT ${scalars(sql)}, ${author(sql)}
    FROM blogs JOIN users ON users.id = author_id
    WHERE blogs.id = ${id}
  `
  return blog
}

export const listBlogsOf = (sql: Sql, authorId: string): CachedQuery<Body<typeof listMine>> => ({
  list: ['blogs', sql`
    SELECT ${scalars(sql)} FROM blogs WHERE author_id = ${authorId} ORDER BY created_at DESC, id
  `],
})

export const listAllBlogs = (sql: Sql): CachedQuery<Body<typeof listAll>> => ({
  list: ['blogs', sql`
    SELECT ${scalars(sql)}, ${authorName(sql)}
    FROM blogs JOIN users ON users.id = author_id
    ORDER BY blogs.created_at DESC, blogs.id
  `],
})

export async function insertBlog (sql: Sql, { title, content, imageUrl, status, authorId }: NewBlog) {
  return only(await sql<BlogWithAuthor[]>`
    WITH blogs AS (
      INSERT INTO blogs (title, content, image_url, status, author_id)
      VALUES (${title}, ${content}, ${imageUrl ?? null}, ${status ?? 'DRAFT'}, ${authorId})
      RETURNING *
    )
    SELECT ${scalars(sql)}, ${author(sql)} FROM blogs JOIN users ON users.id = author_id
  `)
}

/** Changes the fields that are given. */
export async function updateBlog (
  sql: Sql, id: string, { title, content, imageUrl, status }: Static<typeof update.body>
) {
  return only(await sql<BlogWithAuthor[]>`
    WITH blogs AS (
      UPDATE blogs SET
        title = coalesce(${title ?? null}, title),
        content = coalesce(${content ?? null}, content),
        image_url = coalesce(${imageUrl ?? null}, image_url),
        status = coalesce(${status ?? null}, status)
      WHERE id = ${id}
      RETURNING *
    )
    SELECT ${scalars(sql)}, ${author(sql)} FROM blogs JOIN users ON users.id = author_id
  `)
}

export async function setBlogStatus (sql: Sql, id: string, status: Blog['status']) {
  return only(await sql<Blog[]>`
    UPDATE blogs SET status = ${status} WHERE id = ${id} RETURNING ${scalars(sql)}
  `)
}

export async function deleteBlog (sql: Sql, id: string) {
  only(await sql`DELETE FROM blogs WHERE id = ${id} RETURNING id`)
}
