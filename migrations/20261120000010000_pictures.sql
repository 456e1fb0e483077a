-- Up Migration

-- The pictures whose links are in a text.
CREATE FUNCTION picture_ids(text) RETURNS uuid[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog
AS $$
  SELECT array(
    SELECT DISTINCT link[1]::uuid
    FROM regexp_matches($1, '/pictures/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})', 'g') AS link
  )
$$;

-- Uploaded pictures, in two widths of WebP. A picture that is in use outlives the account of its owner.
CREATE TABLE pictures (
  id uuid PRIMARY KEY DEFAULT new_id(),
  user_id uuid REFERENCES users ON DELETE SET NULL,
  large bytea NOT NULL,
  small bytea NOT NULL,
  -- Of `large`, in pixels.
  width integer NOT NULL,
  height integer NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  -- When a sweep first found the picture unused; null while it is in use.
  unused_since timestamptz(3) DEFAULT statement_timestamp()
);

-- WebP is compressed already.
ALTER TABLE pictures ALTER large SET STORAGE EXTERNAL, ALTER small SET STORAGE EXTERNAL;

-- GET /me/pictures; the pictures of an erased account
CREATE INDEX pictures_of_user_newest ON pictures (user_id, created_at DESC, id);

-- Where a picture is used
CREATE INDEX blogs_pictures ON blogs USING gin (picture_ids(image_url));
CREATE INDEX blogs_pictures_in_content ON blogs USING gin (picture_ids(content));
CREATE INDEX clubs_pictures ON clubs USING gin (picture_ids(image_url));
CREATE INDEX events_pictures ON events USING gin (picture_ids(image_url));
CREATE INDEX mentors_pictures ON mentors USING gin (picture_ids(image_url));
CREATE INDEX testimonials_pictures ON testimonials USING gin (picture_ids(image_url));
CREATE INDEX users_pictures ON users USING gin (picture_ids(avatar));

-- Down Migration

DROP INDEX users_pictures, testimonials_pictures, mentors_pictures, events_pictures, clubs_pictures, blogs_pictures,
  blogs_pictures_in_content;
DROP TABLE pictures;
DROP FUNCTION picture_ids(text);
