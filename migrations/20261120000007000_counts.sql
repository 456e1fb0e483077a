-- Up Migration

-- The tables are locked in the order of the operations that write to two of them, so that none deadlocks.
LOCK TABLE event_registrations, events, mentors, mentor_likes, testimonials IN SHARE ROW EXCLUSIVE MODE;

-- Lists show these counts without counting rows. A count is the sum of at most 32 rows, its slots. A connection changes
-- the slot of its process id, so that people who register for one event at the same time do not wait for one row.
-- Triggers keep the counts, so they are right whoever writes.

CREATE TABLE event_registration_counts (
  event_id uuid NOT NULL REFERENCES events ON DELETE CASCADE,
  slot integer NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (event_id, slot)
) WITH (fillfactor = 50);

CREATE TABLE mentor_like_counts (
  mentor_id uuid NOT NULL REFERENCES mentors ON DELETE CASCADE,
  slot integer NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (mentor_id, slot)
) WITH (fillfactor = 50);

CREATE TABLE row_counts (
  relation name NOT NULL,
  slot integer NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (relation, slot)
) WITH (fillfactor = 50);

CREATE FUNCTION counter_slot() RETURNS integer
LANGUAGE sql STABLE
AS 'SELECT pg_backend_pid() % 32';

-- A row that is deleted together with its event or mentor is not counted, because the foreign key deletes the counts.

CREATE FUNCTION count_event_registrations() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF TG_OP IN ('INSERT', 'UPDATE') THEN
    INSERT INTO event_registration_counts AS counts (event_id, slot, count)
    SELECT event_id, counter_slot(), count(*) FROM added GROUP BY event_id ORDER BY event_id
    ON CONFLICT (event_id, slot) DO UPDATE SET count = counts.count + excluded.count;
  END IF;
  IF TG_OP IN ('DELETE', 'UPDATE') THEN
    INSERT INTO event_registration_counts AS counts (event_id, slot, count)
    SELECT event_id, counter_slot(), -count(*) FROM removed
    WHERE EXISTS (SELECT FROM events WHERE events.id = event_id) GROUP BY event_id ORDER BY event_id
    ON CONFLICT (event_id, slot) DO UPDATE SET count = counts.count + excluded.count;
  END IF;
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM event_registration_counts;
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION count_mentor_likes() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF TG_OP IN ('INSERT', 'UPDATE') THEN
    INSERT INTO mentor_like_counts AS counts (mentor_id, slot, count)
    SELECT mentor_id, counter_slot(), count(*) FROM added GROUP BY mentor_id ORDER BY mentor_id
    ON CONFLICT (mentor_id, slot) DO UPDATE SET count = counts.count + excluded.count;
  END IF;
  IF TG_OP IN ('DELETE', 'UPDATE') THEN
    INSERT INTO mentor_like_counts AS counts (mentor_id, slot, count)
    SELECT mentor_id, counter_slot(), -count(*) FROM removed
    WHERE EXISTS (SELECT FROM mentors WHERE mentors.id = mentor_id) GROUP BY mentor_id ORDER BY mentor_id
    ON CONFLICT (mentor_id, slot) DO UPDATE SET count = counts.count + excluded.count;
  END IF;
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM mentor_like_counts;
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION count_rows() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    DELETE FROM row_counts WHERE relation = TG_TABLE_NAME;
  ELSE
    INSERT INTO row_counts AS counts (relation, slot, count)
    SELECT TG_TABLE_NAME, counter_slot(), CASE TG_OP WHEN 'INSERT' THEN count(*) ELSE -count(*) END FROM changed
    ON CONFLICT (relation, slot) DO UPDATE SET count = counts.count + excluded.count;
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER count_insert AFTER INSERT ON event_registrations
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_event_registrations();
CREATE TRIGGER count_update AFTER UPDATE ON event_registrations
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_event_registrations();
CREATE TRIGGER count_delete AFTER DELETE ON event_registrations
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_event_registrations();
CREATE TRIGGER count_truncate AFTER TRUNCATE ON event_registrations
  FOR EACH STATEMENT EXECUTE FUNCTION count_event_registrations();

CREATE TRIGGER count_insert AFTER INSERT ON mentor_likes
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_mentor_likes();
CREATE TRIGGER count_update AFTER UPDATE ON mentor_likes
  REFERENCING OLD TABLE AS removed NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_mentor_likes();
CREATE TRIGGER count_delete AFTER DELETE ON mentor_likes
  REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_mentor_likes();
CREATE TRIGGER count_truncate AFTER TRUNCATE ON mentor_likes
  FOR EACH STATEMENT EXECUTE FUNCTION count_mentor_likes();

CREATE TRIGGER count_insert AFTER INSERT ON events
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rows();
CREATE TRIGGER count_delete AFTER DELETE ON events
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rows();
CREATE TRIGGER count_truncate AFTER TRUNCATE ON events
  FOR EACH STATEMENT EXECUTE FUNCTION count_rows();

CREATE TRIGGER count_insert AFTER INSERT ON testimonials
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rows();
CREATE TRIGGER count_delete AFTER DELETE ON testimonials
  REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_rows();
CREATE TRIGGER count_truncate AFTER TRUNCATE ON testimonials
  FOR EACH STATEMENT EXECUTE FUNCTION count_rows();

INSERT INTO event_registration_counts SELECT event_id, 0, count(*) FROM event_registrations GROUP BY event_id;
INSERT INTO mentor_like_counts SELECT mentor_id, 0, count(*) FROM mentor_likes GROUP BY mentor_id;
INSERT INTO row_counts SELECT 'events', 0, count(*) FROM events;
INSERT INTO row_counts SELECT 'testimonials', 0, count(*) FROM testimonials;

-- Down Migration

-- CASCADE also drops the triggers.
DROP FUNCTION count_rows() CASCADE;
DROP FUNCTION count_mentor_likes() CASCADE;
DROP FUNCTION count_event_registrations() CASCADE;
DROP FUNCTION counter_slot();
DROP TABLE row_counts;
DROP TABLE mentor_like_counts;
DROP TABLE event_registration_counts;
