-- Up Migration

-- A new row was updated when it was created: by the time of the statement, not by two looks at the clock.
ALTER TABLE users
  ALTER created_at SET DEFAULT statement_timestamp(),
  ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE blogs
  ALTER created_at SET DEFAULT statement_timestamp(),
  ALTER updated_at SET DEFAULT statement_timestamp();

-- Down Migration

ALTER TABLE users
  ALTER created_at SET DEFAULT clock_timestamp(),
  ALTER updated_at SET DEFAULT clock_timestamp();
ALTER TABLE blogs
  ALTER created_at SET DEFAULT clock_timestamp(),
  ALTER updated_at SET DEFAULT clock_timestamp();
