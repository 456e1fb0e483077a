-- Up Migration

-- Messages to all who are registered for an event. The outbox refers to them.
CREATE TABLE event_messages (
  id uuid PRIMARY KEY DEFAULT new_id(),
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  sender_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  subject text NOT NULL,
  text text NOT NULL,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp()
);

-- Deleting an event
CREATE INDEX event_messages_of_event ON event_messages (event_id);
-- GET /me/export; deleting a user
CREATE INDEX event_messages_of_sender_newest ON event_messages (sender_id, created_at DESC, id);
-- Removing past messages
CREATE INDEX event_messages_created_at ON event_messages (created_at);

-- Down Migration

DROP TABLE event_messages;
