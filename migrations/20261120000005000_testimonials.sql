-- Up Migration

CREATE TABLE testimonials (
  id uuid PRIMARY KEY DEFAULT new_id(),
  name text NOT NULL,
  image_url text,
  batch_year integer NOT NULL,
  content text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);

-- GET /testimonials
CREATE INDEX testimonials_newest ON testimonials (created_at DESC, id);

-- Down Migration

DROP TABLE testimonials;
