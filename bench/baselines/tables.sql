-- The table of registrations without the triggers that count, with users and events whose ids are computed from
-- numbers.
CREATE SCHEMA baseline;

CREATE FUNCTION baseline.id(number bigint) RETURNS uuid
LANGUAGE sql IMMUTABLE
AS $$ SELECT ('00000000-0000-7000-8000-' || lpad(number::text, 12, '0'))::uuid $$;

CREATE TABLE baseline.users AS SELECT baseline.id(n) AS id FROM generate_series(0, 4999) AS n;
ALTER TABLE baseline.users ADD PRIMARY KEY (id);

CREATE TABLE baseline.events AS SELECT baseline.id(n) AS id FROM generate_series(0, 999) AS n;
ALTER TABLE baseline.events ADD PRIMARY KEY (id);

CREATE TABLE baseline.event_registrations (
  LIKE event_registrations INCLUDING ALL,
  FOREIGN KEY (user_id) REFERENCES baseline.users,
  FOREIGN KEY (event_id) REFERENCES baseline.events
);

ANALYZE baseline.users, baseline.events;
