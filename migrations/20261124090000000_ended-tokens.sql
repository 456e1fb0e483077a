-- Up Migration

-- Whose tokens were ended: a token of another epoch than that of its user is not accepted any more. Without a foreign
-- key: the deletion of an account ends no token, and must not revive one either.
CREATE TABLE ended_tokens (
  user_id uuid PRIMARY KEY,
  -- Random, since it may come again neither after a failover nor after a restore.
  epoch uuid NOT NULL DEFAULT gen_random_uuid(),
  ended_at timestamptz(3) NOT NULL DEFAULT statement_timestamp()
);

-- Finding the rows that are past
CREATE INDEX ended_tokens_ended_at ON ended_tokens (ended_at);

-- Down Migration

DROP TABLE ended_tokens;
