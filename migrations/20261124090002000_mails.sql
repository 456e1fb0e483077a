-- Up Migration

-- The outbox: mails are written by the statement that causes them, and sent by any instance. See docs/mail.md.
CREATE TABLE mails (
  id uuid PRIMARY KEY DEFAULT new_id(),
  -- A name in lib/mail/kinds.ts
  kind text NOT NULL,
  -- Mails to one person about their account overtake those to many.
  bulk boolean NOT NULL,
  -- The address is looked up when the mail is sent.
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  data jsonb NOT NULL,
  -- A user has one mail of a kind and a key. Null is like no other.
  key text,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'processing', 'sent', 'failed', 'unknown')),
  -- When it is to be sent; of one that is being sent, when the claim expires.
  due_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  -- Fencing: the outcome of a claim counts while it is the latest.
  claim uuid,
  attempts integer NOT NULL DEFAULT 0,
  -- Of the last attempt
  error text,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  -- When it became sent, failed or unknown
  settled_at timestamptz(3),
  UNIQUE (user_id, kind, key)
);

-- Mails that are due, claims that are past, and counts of the metrics
CREATE INDEX mails_due ON mails (status, bulk, due_at) WHERE status <> 'sent';

-- Mails that are past
CREATE INDEX mails_settled ON mails (settled_at) WHERE settled_at IS NOT NULL;

-- Down Migration

DROP TABLE mails;
