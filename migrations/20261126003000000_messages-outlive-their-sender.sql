-- Up Migration

-- An accepted message is sent even if its sender erases their account or its event is deleted. Then the email names the
-- event by its last title. Locks event_messages, for a moment.
ALTER TABLE event_messages ALTER sender_id DROP NOT NULL, ALTER event_id DROP NOT NULL, ADD event_title text;

-- Down Migration

DELETE FROM event_messages WHERE sender_id IS NULL OR event_id IS NULL;
ALTER TABLE event_messages ALTER sender_id SET NOT NULL, ALTER event_id SET NOT NULL, DROP event_title;
