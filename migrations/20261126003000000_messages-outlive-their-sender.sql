-- Up Migration

-- An accepted message is sent even if its sender erases their account or its event is deleted. Then the email names the
-- event by its last title. Locks event_messages and email_batches, for a moment.
ALTER TABLE event_messages ALTER sender_id DROP NOT NULL, ALTER event_id DROP NOT NULL, ADD event_title text;

-- Deleting a user: whether a message still waits to be sent
CREATE INDEX email_batches_of_message ON email_batches ((data ->> 'message')) WHERE data ->> 'message' IS NOT NULL;

-- Down Migration

DROP INDEX email_batches_of_message;
DELETE FROM event_messages WHERE sender_id IS NULL OR event_id IS NULL;
ALTER TABLE event_messages ALTER sender_id SET NOT NULL, ALTER event_id SET NOT NULL, DROP event_title;
