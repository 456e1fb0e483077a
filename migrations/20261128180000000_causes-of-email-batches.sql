-- Up Migration

-- Everybody who causes emails takes turns.
ALTER TABLE email_batches ADD COLUMN caused_by text;
COMMENT ON COLUMN email_batches.caused_by IS 'Who caused the emails: an account, a network, or the club of a reminder';
COMMENT ON COLUMN emails.network IS 'Who caused the email: an account, a network, or the club of a reminder';

-- Down Migration

COMMENT ON COLUMN emails.network IS NULL;
ALTER TABLE email_batches DROP COLUMN caused_by;
