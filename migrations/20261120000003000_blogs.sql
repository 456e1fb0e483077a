-- Up Migration

CREATE TABLE blogs (
  id uuid PRIMARY KEY DEFAULT new_id(),
  title text NOT NULL,
  content text NOT NULL,
  image_url text,
  status text NOT NULL DEFAULT 'DRAFT' CHECK (status IN ('DRAFT', 'PUBLISHED', 'ARCHIVED')),
  author_id uuid NOT NULL REFERENCES users,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  updated_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  -- The first publication. The feed is in this order, so that it also shows a post that was approved late.
  published_at timestamptz(3)
);

CREATE TRIGGER set_updated_at BEFORE UPDATE ON blogs FOR EACH ROW EXECUTE FUNCTION set_updated_at();

CREATE FUNCTION set_published_at() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    -- A post by an admin is published when it is created. A backup that is restored has its own time.
    IF NEW.status = 'PUBLISHED' THEN NEW.published_at := coalesce(NEW.published_at, NEW.created_at); END IF;
  ELSIF NEW.status = 'PUBLISHED' THEN
    NEW.published_at := coalesce(OLD.published_at, clock_timestamp());
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER set_published_at BEFORE INSERT OR UPDATE ON blogs FOR EACH ROW EXECUTE FUNCTION set_published_at();

-- GET /blogs
CREATE INDEX blogs_published_newest ON blogs (created_at DESC, id) WHERE status = 'PUBLISHED';
-- GET /blogs/admin
CREATE INDEX blogs_newest ON blogs (created_at DESC, id);
-- GET /blogs/me; counting a user's posts; refusing to delete their author
CREATE INDEX blogs_of_author_newest ON blogs (author_id, created_at DESC, id);
-- GET /feeds/blogs.atom
CREATE INDEX blogs_published_first ON blogs (published_at DESC, id) WHERE status = 'PUBLISHED';

-- Down Migration

DROP TABLE blogs;
DROP FUNCTION set_published_at();
