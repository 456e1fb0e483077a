-- Up Migration

-- An email is sent at least once: a claim is a lease, and when it has expired, the email is sent again.
ALTER TABLE mails DROP CONSTRAINT mails_status_check;
UPDATE mails SET status = 'pending', due_at = now() WHERE status = 'processing';
UPDATE mails SET status = 'failed' WHERE status = 'unknown';
ALTER TABLE mails
  ADD CONSTRAINT mails_status_check CHECK (status IN ('pending', 'sent', 'failed')),
  DROP claim,
  -- The network of the client that caused the email. Networks take turns.
  ADD network text;
COMMENT ON COLUMN mails.due_at IS 'When it is to be sent; of one that a sender has claimed, when its lease expires';

-- A batch is written for these users, from number `next` on. One that is written stays for a while, due at infinity.
ALTER TABLE mailings
  ADD next integer NOT NULL DEFAULT 1,
  -- When the first email of the batch was written
  ADD told_at timestamptz(3),
  -- A batch about an event goes with it.
  ADD event_id uuid REFERENCES events ON DELETE CASCADE,
  DROP caused_at;

CREATE INDEX mailings_of_event ON mailings (event_id) WHERE event_id IS NOT NULL;

-- Events whose reminders are written, for the date that they have.
DROP TABLE event_reminders;
CREATE TABLE event_reminders (event_id uuid PRIMARY KEY REFERENCES events ON DELETE CASCADE);

CREATE OR REPLACE FUNCTION count_event_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  NEW.sequence := OLD.sequence + 1;
  -- A moved event has other reminders.
  IF NEW.date <> OLD.date THEN DELETE FROM event_reminders WHERE event_id = NEW.id; END IF;
  RETURN NEW;
END
$$;

-- Down Migration

CREATE OR REPLACE FUNCTION count_event_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  NEW.sequence := OLD.sequence + 1;
  RETURN NEW;
END
$$;

DROP TABLE event_reminders;
CREATE TABLE event_reminders (
  event_id uuid REFERENCES events ON DELETE CASCADE,
  date timestamptz(3),
  PRIMARY KEY (event_id, date)
);

DELETE FROM mailings WHERE due_at = 'infinity';
ALTER TABLE mailings
  DROP next, DROP told_at, DROP event_id, ADD caused_at timestamptz(3) NOT NULL DEFAULT statement_timestamp();

ALTER TABLE mails
  DROP CONSTRAINT mails_status_check,
  ADD CONSTRAINT mails_status_check CHECK (status IN ('pending', 'processing', 'sent', 'failed', 'unknown')),
  DROP network,
  ADD claim uuid;
COMMENT ON COLUMN mails.due_at IS NULL;
