-- Up Migration

-- Writes to these tables wait while their indexes are built: about three seconds for 100,000 posts of 3 KB.

-- The pictures whose links are in a text. Only the first 100 count, because a text can contain 20,000 links.
CREATE OR REPLACE FUNCTION picture_ids(text) RETURNS uuid[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog
AS $$
  SELECT array(
    SELECT DISTINCT left(link, 36)::uuid
    FROM (
      SELECT link
      FROM unnest((string_to_array($1, '/pictures/'))[2:1001]) WITH ORDINALITY AS links (link, number)
      WHERE link ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
      ORDER BY number LIMIT 100
    ) AS links
  )
$$;

-- These indexes contain results of the function before, which did not find ids in upper case.
REINDEX INDEX blogs_pictures;
REINDEX INDEX blogs_pictures_in_content;
REINDEX INDEX clubs_pictures;
REINDEX INDEX events_pictures;
REINDEX INDEX mentors_pictures;
REINDEX INDEX testimonials_pictures;
REINDEX INDEX users_pictures;

-- Keys of pictures that only the owner may use: each id, followed by the owner if there is one.
CREATE FUNCTION picture_keys(uuid[], owner uuid) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog
AS $$
  SELECT array(SELECT id || coalesce(' ' || owner, '') FROM unnest($1) AS id)
$$;

-- A published post uses any picture. A draft uses pictures of its author only, so that drafts of strangers do not count.
-- Without a list of pending entries, which each search would read. Version 1.0.0 uses the indexes blogs_pictures and
-- blogs_pictures_in_content, so they stay until version 1.2.
CREATE INDEX blogs_picture_keys ON blogs USING gin (
  picture_keys(picture_ids(coalesce(image_url, '') || ' ' || content), CASE WHEN status <> 'PUBLISHED' THEN author_id END)
) WITH (fastupdate = off);

-- Down Migration

DROP INDEX blogs_picture_keys;
DROP FUNCTION picture_keys(uuid[], uuid);

CREATE OR REPLACE FUNCTION picture_ids(text) RETURNS uuid[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog
AS $$
  SELECT array(
    SELECT DISTINCT link[1]::uuid
    FROM regexp_matches($1, '/pictures/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})', 'g') AS link
  )
$$;
