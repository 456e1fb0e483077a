-- Up Migration

CREATE TABLE events (
  id uuid PRIMARY KEY DEFAULT new_id(),
  title text NOT NULL,
  description text NOT NULL,
  image_url text,
  -- Years of four digits only: every answer has the form 2026-01-31T09:30:00.000Z.
  date timestamptz(3) NOT NULL
    CHECK (date >= '0001-01-01 00:00:00+00' AND date < '10000-01-01 00:00:00+00'),
  club_id uuid NOT NULL REFERENCES clubs,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);

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

-- Down Migration

DROP TABLE event_registrations;
DROP TABLE events;
