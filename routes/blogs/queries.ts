import type { Static } from '@sinclair/typebox'

import type { Body, CachedQuery } from '../../lib/cache/index.ts'
import { expectOne, type Sql } from '../../lib/database/client.ts'
import type { create, listAll, listMine, listPublished, read, update } from './schemas.ts'

type Blog = Static<typeof listMine.response[200]>['blogs'][number]
type BlogWithAuthor = Static<typeof read.response[200]>['blog']
type NewBlog = Static<typeof create.body> & { authorId: string }

const columns = (sql: Sql) => sql`
  blogs.id, title, content, image_url AS "imageUrl", status, author_id AS "authorId",
  iso8601(blogs.created_at) AS "createdAt", iso8601(blogs.updated_at) AS "updatedAt"
`

const authorColumn = (sql: Sql) => sql`
  json_build_object('firstName', first_name, 'lastName', last_name, 'avatar', avatar) AS author
`

const authorNameColumn = (sql: Sql) => sql`
  json_build_object('firstName', first_name, 'lastName', last_name) AS author
`

export const publishedBlogsQuery = (sql: Sql): CachedQuery<Body<typeof listPublished>> => ({
  list: {
    field: 'blogs',
    rows: sql`
      SELECT ${columns(sql)}, ${authorColumn(sql)}
      FROM blogs JOIN users ON users.id = author_id
      WHERE status = 'PUBLISHED'
      ORDER BY blogs.created_at DESC, blogs.id
    `,
  },
})

/** The blog, if it is published. */
export const publishedBlogQuery = (sql: Sql, id: string): CachedQuery<Body<typeof read>> => ({
  fields: sql`
    SELECT blog
    FROM (
      SELECT ${columns(sql)}, ${authorColumn(sql)}
      FROM blogs JOIN users ON users.id = author_id
      WHERE blogs.id = ${id} AND status = 'PUBLISHED'
    ) AS blog
  `,
})

export async function findBlog (sql: Sql, id: string) {
  const [blog] = await sql<BlogWithAuthor[]>`
    SELECT ${columns(sql)}, ${authorColumn(sql)}
    FROM blogs JOIN users ON users.id = author_id
    WHERE blogs.id = ${id}
  `
  return blog
}

export const blogsOfAuthorQuery = (sql: Sql, authorId: string): CachedQuery<Body<typeof listMine>> => ({
  list: {
    field: 'blogs',
    rows: sql`
      SELECT ${columns(sql)} FROM blogs WHERE author_id = ${authorId} ORDER BY created_at DESC, id
    `,
  },
})

export const allBlogsQuery = (sql: Sql): CachedQuery<Body<typeof listAll>> => ({
  list: {
    field: 'blogs',
    rows: sql`
      SELECT ${columns(sql)}, ${authorNameColumn(sql)}
      FROM blogs JOIN users ON users.id = author_id
      ORDER BY blogs.created_at DESC, blogs.id
    `,
  },
})

export async function insertBlog (sql: Sql, { title, content, imageUrl, status, authorId }: NewBlog) {
  return expectOne(await sql<BlogWithAuthor[]>`
    WITH blogs AS (
      INSERT INTO blogs (title, content, image_url, status, author_id)
      VALUES (${title}, ${content}, ${imageUrl ?? null}, ${status ?? 'DRAFT'}, ${authorId})
      RETURNING *
    )
    SELECT ${columns(sql)}, ${authorColumn(sql)} FROM blogs JOIN users ON users.id = author_id
  `)
}

/** Changes the fields that are given. */
export async function updateBlog (
  sql: Sql, id: string, { title, content, imageUrl, status }: Static<typeof update.body>
) {
  return expectOne(await sql<BlogWithAuthor[]>`
    WITH blogs AS (
      UPDATE blogs SET
        title = coalesce(${title ?? null}, title),
        content = coalesce(${content ?? null}, content),
        image_url = coalesce(${imageUrl ?? null}, image_url),
        status = coalesce(${status ?? null}, status)
      WHERE id = ${id}
      RETURNING *
    )
    SELECT ${columns(sql)}, ${authorColumn(sql)} FROM blogs JOIN users ON users.id = author_id
  `)
}

export async function setBlogStatus (sql: Sql, id: string, status: Blog['status']) {
  return expectOne(await sql<Blog[]>`
    UPDATE blogs SET status = ${status} WHERE id = ${id} RETURNING ${columns(sql)}
  `)
}

export async function deleteBlog (sql: Sql, id: string) {
  expectOne(await sql`DELETE FROM blogs WHERE id = ${id} RETURNING id`)
}
