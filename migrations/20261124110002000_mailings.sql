-- Up Migration

-- Mails to many: the statement that causes them writes one row, and a sender makes it a mail for each of these users.
-- Thousands of mails would take the statement too long.
CREATE TABLE mailings (
  id uuid PRIMARY KEY DEFAULT new_id(),
  kind text NOT NULL,
  -- While a mailing waits, it takes in others of its kind and key. Null is like no other.
  key text,
  data jsonb NOT NULL,
  user_ids uuid[] NOT NULL,
  due_at timestamptz(3) NOT NULL,
  -- When it was caused last
  caused_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  UNIQUE (kind, key)
);

CREATE INDEX mailings_due_at ON mailings (due_at);

-- Down Migration

DROP TABLE mailings;
