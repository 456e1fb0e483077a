-- Up Migration

CREATE TABLE blogs (
  id uuid PRIMARY KEY DEFAULT new_id(),
  title text NOT NULL,
  content text NOT NULL,
  image_url text,
  status text NOT NULL DEFAULT 'DRAFT' CHECK (status IN ('DRAFT', 'PUBLISHED', 'ARCHIVED')),
  author_id uuid NOT NULL REFERENCES users,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);

CREATE TRIGGER set_updated_at BEFORE UPDATE ON blogs FOR EACH ROW EXECUTE FUNCTION set_updated_at();

-- GET /blogs
CREATE INDEX blogs_published_newest ON blogs (created_at DESC, id) WHERE status = 'PUBLISHED';
-- GET /blogs/admin
CREATE INDEX blogs_newest ON blogs (created_at DESC, id);
-- GET /blogs/me; counting a user's blogs; refusing to delete their author
CREATE INDEX blogs_of_author_newest ON blogs (author_id, created_at DESC, id);

-- Down Migration

DROP TABLE blogs;
