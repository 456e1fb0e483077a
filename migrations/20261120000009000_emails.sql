-- Up Migration

-- The outbox. The statement that causes an email writes it, and any instance sends it. See docs/design/outbox.md.
CREATE TABLE emails (
  id uuid PRIMARY KEY DEFAULT new_id(),
  -- A name in lib/email/templates.ts
  template text NOT NULL,
  -- Emails to one person about their account overtake bulk emails.
  bulk boolean NOT NULL,
  -- The network of the client that caused the email. Networks take turns.
  network text,
  -- The sender reads the email address from the account when it sends.
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  data jsonb NOT NULL,
  -- A user gets one email per template and key. Null differs from every key.
  key text,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sent', 'failed')),
  -- When the email is to be sent. A sender that claims it moves this to the end of its lease.
  due_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  -- The last claim. The email is composed after it, so it includes everything that was committed before.
  claimed_at timestamptz(3),
  attempts integer NOT NULL DEFAULT 0,
  -- The error of the last attempt
  error text,
  -- SHA-256, base64url, of the token in the link to unsubscribe. Each claim makes a new token.
  token_hash text,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  -- When the status became sent or failed
  settled_at timestamptz(3),
  UNIQUE (user_id, template, key)
);

-- Due emails, and the counts of the metrics
CREATE INDEX emails_due ON emails (status, bulk, due_at) WHERE status <> 'sent';
-- Deleting old emails
CREATE INDEX emails_settled ON emails (settled_at) WHERE settled_at IS NOT NULL;
-- POST /account/unsubscribe/:token
CREATE UNIQUE INDEX emails_token_hash ON emails (token_hash) WHERE token_hash IS NOT NULL;

-- Bulk emails: the statement that causes them writes one row, and a sender writes the emails, because thousands of
-- emails would take the statement too long.
CREATE TABLE email_batches (
  id uuid PRIMARY KEY DEFAULT new_id(),
  template text NOT NULL,
  -- A batch that waits takes in later ones of its template and key. Null differs from every key.
  key text,
  data jsonb NOT NULL,
  -- A batch about an event is deleted with it.
  event_id uuid REFERENCES events ON DELETE CASCADE,
  user_ids uuid[] NOT NULL,
  -- The number of the next user whose email is to be written. A batch whose emails are all written is due at infinity.
  next integer NOT NULL DEFAULT 1,
  due_at timestamptz(3) NOT NULL,
  -- When the first email of the batch was written
  told_at timestamptz(3),
  UNIQUE (template, key)
);

CREATE INDEX email_batches_due_at ON email_batches (due_at);
CREATE INDEX email_batches_of_event ON email_batches (event_id) WHERE event_id IS NOT NULL;

-- The emails that a user wants. A user without a row wants all. Each template in lib/email/notifications.ts has a column.
CREATE TABLE notifications (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  registration boolean NOT NULL DEFAULT true,
  event_changed boolean NOT NULL DEFAULT true,
  event_cancelled boolean NOT NULL DEFAULT true,
  event_reminder boolean NOT NULL DEFAULT true,
  event_message boolean NOT NULL DEFAULT true,
  blog_decision boolean NOT NULL DEFAULT true
);

-- Down Migration

DROP TABLE notifications;
DROP TABLE email_batches;
DROP TABLE emails;
