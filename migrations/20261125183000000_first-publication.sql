-- Up Migration

-- When a blog was published first. Empty for blogs that were published before there was this column: that is when they
-- were written.
ALTER TABLE blogs ADD COLUMN published_at timestamptz(3);

CREATE FUNCTION set_published_at() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
  IF NEW.status = 'PUBLISHED' THEN
    NEW.published_at := CASE
      -- A blog that is written by an admin is published as it is created.
      WHEN TG_OP = 'INSERT' THEN NEW.created_at
      ELSE coalesce(OLD.published_at, CASE WHEN OLD.status = 'PUBLISHED' THEN OLD.created_at END, clock_timestamp())
    END;
  ELSIF TG_OP = 'UPDATE' AND OLD.status = 'PUBLISHED' THEN
    NEW.published_at := coalesce(OLD.published_at, OLD.created_at);
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER set_published_at BEFORE INSERT OR UPDATE ON blogs FOR EACH ROW EXECUTE FUNCTION set_published_at();

-- GET /feeds/blogs.atom
CREATE INDEX blogs_published_first ON blogs (coalesce(published_at, created_at) DESC, id) WHERE status = 'PUBLISHED';

-- Down Migration

DROP INDEX blogs_published_first;
DROP TRIGGER set_published_at ON blogs;
DROP FUNCTION set_published_at;
ALTER TABLE blogs DROP COLUMN published_at;
