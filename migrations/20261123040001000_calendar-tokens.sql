-- Up Migration

-- Who may be found by the address of their own calendar. The address has a token in it, of which this has the hash only.
CREATE TABLE calendar_tokens (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  -- SHA-256, base64url
  -- GET /feeds/me/:token.ics
  token_hash text NOT NULL UNIQUE,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp()
);

-- Down Migration

DROP TABLE calendar_tokens;
