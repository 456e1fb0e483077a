-- Up Migration

CREATE TABLE events (
  id uuid PRIMARY KEY DEFAULT new_id(),
  title text NOT NULL,
  description text NOT NULL,
  image_url text,
  -- Years have four digits, because every response has the form 2026-01-31T09:30:00.000Z.
  date timestamptz(3) NOT NULL
    CHECK (date >= '0001-01-01 00:00:00+00' AND date < '10000-01-01 00:00:00+00'),
  club_id uuid NOT NULL REFERENCES clubs,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  -- The number of changes of the title, the date or the club. A calendar app keeps the entry with the highest number.
  sequence integer NOT NULL DEFAULT 0
);

CREATE TRIGGER set_updated_at BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION set_updated_at();

-- GET /events, sort=desc and sort=asc
CREATE INDEX events_latest ON events (date DESC, id);
CREATE INDEX events_earliest ON events (date, id);
-- GET /events/mine; GET /clubs: events
CREATE INDEX events_of_club_latest ON events (club_id, date DESC, id);

CREATE TABLE event_registrations (
  id uuid PRIMARY KEY DEFAULT new_id(),
  user_id uuid NOT NULL REFERENCES users,
  event_id uuid NOT NULL REFERENCES events,
  registered_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  -- GET /events/registered; counting a user's registrations; refusing to delete that user
  UNIQUE (user_id, event_id)
);

-- GET /events/:id/registrations; counting an event's registrations, and deleting them before it
CREATE INDEX event_registrations_of_event_newest ON event_registrations (event_id, registered_at DESC, id);
-- GET /users/analytics: recentRegistrations
CREATE INDEX event_registrations_newest ON event_registrations (registered_at DESC, id);

-- Events whose reminders are in the outbox.
CREATE TABLE event_reminders (event_id uuid PRIMARY KEY REFERENCES events ON DELETE CASCADE);

CREATE FUNCTION count_event_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  NEW.sequence := OLD.sequence + 1;
  -- A moved event gets new reminders.
  IF NEW.date <> OLD.date THEN DELETE FROM event_reminders WHERE event_id = NEW.id; END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER count_event_change BEFORE UPDATE ON events FOR EACH ROW
  WHEN ((NEW.title, NEW.date, NEW.club_id) IS DISTINCT FROM (OLD.title, OLD.date, OLD.club_id))
  EXECUTE FUNCTION count_event_change();

-- Messages to everybody who is registered for an event. The outbox refers to them.
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
-- Deleting old messages
CREATE INDEX event_messages_created_at ON event_messages (created_at);

-- Down Migration

DROP TABLE event_messages;
DROP TABLE event_reminders;
DROP TABLE event_registrations;
DROP TABLE events;
DROP FUNCTION count_event_change();
