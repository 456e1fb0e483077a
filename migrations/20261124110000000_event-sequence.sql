-- Up Migration

-- How often the title, the date or the club of an event was changed: calendars take the entry with the higher number.
ALTER TABLE events ADD sequence integer NOT NULL DEFAULT 0;

CREATE FUNCTION count_event_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  NEW.sequence := OLD.sequence + 1;
  RETURN NEW;
END
$$;

CREATE TRIGGER count_event_change BEFORE UPDATE ON events FOR EACH ROW
  WHEN ((NEW.title, NEW.date, NEW.club_id) IS DISTINCT FROM (OLD.title, OLD.date, OLD.club_id))
  EXECUTE FUNCTION count_event_change();

-- Down Migration

DROP TRIGGER count_event_change ON events;
DROP FUNCTION count_event_change();
ALTER TABLE events DROP sequence;
