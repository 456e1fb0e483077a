-- The table of registrations with all that it has but the triggers that keep counts, users and events for it whose ids
-- follow from their numbers, and the numbers of the real ones.
CREATE SCHEMA floor;

CREATE FUNCTION floor.id(number bigint) RETURNS uuid
LANGUAGE sql IMMUTABLE
AS $$ SELECT ('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid $$;

CREATE TABLE floor.users AS SELECT floor.id(n) AS id FROM generate_series(0, (SELECT count(*) FROM users) - 1) AS n;
ALTER TABLE floor.users ADD PRIMARY KEY (id);

CREATE TABLE floor.events AS SELECT floor.id(n) AS id FROM generate_series(0, 999) AS n;
ALTER TABLE floor.events ADD PRIMARY KEY (id);

CREATE TABLE floor.event_registrations (
  LIKE event_registrations INCLUDING ALL,
  FOREIGN KEY (user_id) REFERENCES floor.users,
  FOREIGN KEY (event_id) REFERENCES floor.events
);

CREATE TABLE floor.real_users AS SELECT row_number() OVER () - 1 AS number, id FROM users;
ALTER TABLE floor.real_users ADD PRIMARY KEY (number);

CREATE TABLE floor.real_events AS
SELECT row_number() OVER () - 1 AS number, id FROM events
WHERE NOT EXISTS (SELECT FROM event_registrations WHERE event_id = events.id);
ALTER TABLE floor.real_events ADD PRIMARY KEY (number);

ANALYZE floor.users, floor.events, floor.real_users, floor.real_events;
