-- Up Migration

-- What the requests with an Idempotency-Key have created, so that a request that is sent twice creates it once. The row
-- is written by the transaction that creates it. See lib/database/idempotency.ts.
CREATE TABLE idempotency_keys (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  -- SHA-256 of the key
  key bytea NOT NULL,
  -- SHA-256 of the method, the path and the body
  request bytea NOT NULL,
  -- The ids of the created rows. Null only within the transaction.
  created_ids uuid[],
  created_at timestamptz NOT NULL DEFAULT statement_timestamp(),
  PRIMARY KEY (user_id, key)
);

-- Deletion of old keys
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

-- Down Migration

DROP TABLE idempotency_keys;
