-- Up Migration

-- The order of the operations that write to two of them prevents a deadlock.
LOCK TABLE event_registrations, events IN SHARE ROW EXCLUSIVE MODE;

-- When an event ends, where it is, and how many seats it has. An event without a row has none of these.
CREATE TABLE event_details (
  event_id uuid PRIMARY KEY REFERENCES events ON DELETE CASCADE,
  -- The end is a duration, so that it moves along with the date and is always later. PostgreSQL would add the days of an
  -- interval in the time zone of the session.
  duration_ms bigint CHECK (duration_ms >= 1),
  place text,
  online_url text,
  capacity integer CHECK (capacity >= 1),
  -- Everybody in line up to this time had a seat when the room became smaller, and keeps it.
  seated_until timestamptz
);

-- GET /agenda: the few events of several days, which began long ago and may still run
CREATE INDEX event_details_of_days ON event_details (event_id) WHERE duration_ms > 86400000;

-- Since when a registered person comes. A registration without a row comes since it was made. A seat is derived from
-- these times and never stored, see lib/agenda/seats.ts.
CREATE TABLE event_answers (
  registration_id uuid PRIMARY KEY REFERENCES event_registrations ON DELETE CASCADE,
  -- The event of the registration
  event_id uuid NOT NULL,
  -- Null if the person does not come
  since timestamptz
);

-- The line of an event, and its end
CREATE INDEX event_answers_of_event ON event_answers (event_id, since);

-- The number of people who do not come, in slots like event_registration_counts.
CREATE TABLE event_decline_counts (
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  slot integer NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (event_id, slot)
) WITH (fillfactor = 50);

CREATE FUNCTION count_event_declines() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF TG_OP IN ('INSERT', 'UPDATE') THEN
    INSERT INTO event_decline_counts AS counts (event_id, slot, count)
    SELECT event_id, counter_slot(), count(*) FROM added WHERE since IS NULL GROUP BY event_id ORDER BY event_id
    ON CONFLICT (event_id, slot) DO UPDATE SET count = counts.count + excluded.count;
  END IF;
  IF TG_OP IN ('DELETE', 'UPDATE') THEN
    INSERT INTO event_decline_counts AS counts (event_id, slot, count)
    SELECT event_id, counter_slot(), -count(*) FROM removed
    WHERE since IS NULL AND EXISTS (SELECT FROM events WHERE events.id = event_id) GROUP BY event_id ORDER BY event_id
    ON CONFLICT (event_id, slot) DO UPDATE SET count = counts.count + excluded.count;
  END IF;
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM event_decline_counts;
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER count_insert AFTER INSERT ON event_answers
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_event_declines();
CREATE TRIGGER count_update AFTER UPDATE ON event_answers
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_event_declines();
CREATE TRIGGER count_delete AFTER DELETE ON event_answers
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_event_declines();
CREATE TRIGGER count_truncate AFTER TRUNCATE ON event_answers
  FOR EACH STATEMENT EXECUTE FUNCTION count_event_declines();

-- The end of the line of an event: now, and later than everybody in line, even after the clock was set back. The caller
-- holds a lock that no other person in line gets before the commit.
CREATE FUNCTION end_of_line(event uuid) RETURNS timestamptz
LANGUAGE sql VOLATILE
SET search_path FROM CURRENT
AS $$
  SELECT greatest(
    clock_timestamp(),
    (SELECT max(since) FROM event_answers WHERE event_id = event) + interval '1 microsecond',
    (SELECT seated_until FROM event_details WHERE event_id = event) + interval '1 microsecond'
  )
$$;

-- If the seats are limited, people who register at the same time wait for each other. Otherwise, somebody who registered
-- earlier but committed later would take the seat of a person who was told about it.
CREATE FUNCTION line_up() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  -- The lock order of every change of seats. The check of the foreign key takes the same lock, perhaps later.
  PERFORM FROM events WHERE id = NEW.event_id FOR KEY SHARE;
  PERFORM FROM event_details WHERE event_id = NEW.event_id AND capacity IS NOT NULL FOR UPDATE;
  IF FOUND THEN
    INSERT INTO event_answers (registration_id, event_id, since)
    VALUES (NEW.id, NEW.event_id, end_of_line(NEW.event_id));
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER line_up AFTER INSERT ON event_registrations FOR EACH ROW EXECUTE FUNCTION line_up();

-- Down Migration

DROP TRIGGER line_up ON event_registrations;
DROP FUNCTION line_up();
DROP FUNCTION end_of_line(uuid);
DROP TABLE event_decline_counts;
DROP TABLE event_answers;
DROP FUNCTION count_event_declines();
DROP TABLE event_details;
