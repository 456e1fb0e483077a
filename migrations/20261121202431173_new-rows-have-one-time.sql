-- Up Migration

-- A new row was updated when it was created: by the time of the statement, not by two looks at the clock.
-- Blogs first, as in operations that read both: they would hold their lock on blogs while they wait for users.
ALTER TABLE blogs
  ALTER created_at SET DEFAULT statement_timestamp(),
  ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE users
  ALTER created_at SET DEFAULT statement_timestamp(),
  ALTER updated_at SET DEFAULT statement_timestamp();

-- Down Migration

ALTER TABLE blogs
  ALTER created_at SET DEFAULT clock_timestamp(),
  ALTER updated_at SET DEFAULT clock_timestamp();
ALTER TABLE users
  ALTER created_at SET DEFAULT clock_timestamp(),
  ALTER updated_at SET DEFAULT clock_timestamp();
