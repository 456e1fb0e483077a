-- Up Migration

-- A draw of seats. People who were in line before `draw_from` stay in front of it. The people behind them take part: the
-- draw orders them by lot, which means that it writes `since` of each, see lib/agenda/draws.ts.
ALTER TABLE event_details
  ADD draw_at timestamptz(3),
  ADD draw_from timestamptz,
  -- 64 hexadecimal digits. No statement selects them before `drawn_at`; everybody knows their hash.
  ADD draw_seed text,
  ADD drawn_at timestamptz,
  ADD CONSTRAINT event_details_draw
    CHECK (num_nulls(draw_at, draw_from, draw_seed) IN (0, 3) AND (drawn_at IS NULL OR draw_at IS NOT NULL)),
  ADD CONSTRAINT event_details_draw_seats
    CHECK (draw_at IS NULL OR drawn_at IS NOT NULL OR capacity IS NOT NULL);

-- The draws that are due
CREATE INDEX event_details_due_draws ON event_details (draw_at) WHERE draw_at IS NOT NULL AND drawn_at IS NULL;

-- The lot of a registration. The bytes sort as their hexadecimal digits do, in every collation.
CREATE FUNCTION lot_of(seed text, registration uuid) RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT sha256(convert_to(seed || ' ' || registration::text, 'UTF8'))
$$;

-- Also later than a draw and the time when it was set.
CREATE OR REPLACE FUNCTION end_of_line(event uuid) RETURNS timestamptz
LANGUAGE sql VOLATILE
SET search_path FROM CURRENT
AS $$
  SELECT greatest(
    clock_timestamp(),
    (SELECT max(since) FROM event_answers WHERE event_id = event) + interval '1 microsecond',
    (
      SELECT greatest(seated_until + interval '1 microsecond', draw_from, drawn_at)
      FROM event_details WHERE event_id = event
    )
  )
$$;

-- While a draw waits, people who register at the same time do not wait for each other, because their order means nothing.
CREATE OR REPLACE FUNCTION line_up() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  -- The lock order of every change of seats. The check of the foreign key takes the same lock, perhaps later.
  PERFORM FROM events WHERE id = NEW.event_id FOR KEY SHARE;
  PERFORM FROM event_details
    WHERE event_id = NEW.event_id AND capacity IS NOT NULL AND (draw_at IS NULL OR drawn_at IS NOT NULL) FOR UPDATE;
  IF FOUND OR EXISTS (
    -- The registration began before the draw was set, or before the seats were drawn, and waited for that.
    SELECT FROM event_details WHERE event_id = NEW.event_id AND NEW.registered_at < coalesce(drawn_at, draw_from)
  ) THEN
    INSERT INTO event_answers (registration_id, event_id, since, answered_at)
    VALUES (NEW.id, NEW.event_id, end_of_line(NEW.event_id), NEW.registered_at);
  END IF;
  RETURN NULL;
END
$$;

-- Down Migration

CREATE OR REPLACE FUNCTION line_up() RETURNS trigger
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

CREATE OR REPLACE FUNCTION end_of_line(event uuid) RETURNS timestamptz
LANGUAGE sql VOLATILE
SET search_path FROM CURRENT
AS $$
  SELECT greatest(
    clock_timestamp(),
    (SELECT max(since) FROM event_answers WHERE event_id = event) + interval '1 microsecond',
    (SELECT seated_until FROM event_details WHERE event_id = event) + interval '1 microsecond'
  )
$$;

DROP FUNCTION lot_of(text, uuid);
DROP INDEX event_details_due_draws;
ALTER TABLE event_details DROP draw_at, DROP draw_from, DROP draw_seed, DROP drawn_at;
