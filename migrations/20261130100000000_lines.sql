-- Up Migration

-- Without a row, a registration is in line since it was made, which no index tells together with the rows of others. So
-- each registration for an event with a number of seats needs a row; entrants of a draw that waits may have none. Nobody
-- can change seats until the commit, about a second for 100,000 registrations. A restore of the data alone works, because
-- pg_dump writes event_answers before event_details.
LOCK TABLE event_details, event_answers IN SHARE ROW EXCLUSIVE MODE;

-- People who registered before the event had a number of seats. The caller holds the lock of the event.
CREATE FUNCTION line_up_all() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  INSERT INTO event_answers (registration_id, event_id, since, answered_at)
  SELECT id, event_id, registered_at, registered_at FROM event_registrations WHERE event_id = NEW.event_id
  ON CONFLICT (registration_id) DO NOTHING;
  RETURN NULL;
END
$$;

CREATE TRIGGER line_up_all AFTER INSERT ON event_details
  FOR EACH ROW WHEN (NEW.capacity IS NOT NULL) EXECUTE FUNCTION line_up_all();
CREATE TRIGGER line_up_all_later AFTER UPDATE OF capacity ON event_details
  FOR EACH ROW WHEN (OLD.capacity IS NULL AND NEW.capacity IS NOT NULL) EXECUTE FUNCTION line_up_all();

INSERT INTO event_answers (registration_id, event_id, since, answered_at)
SELECT id, event_id, registered_at, registered_at FROM event_registrations JOIN event_details USING (event_id)
WHERE capacity IS NOT NULL
ON CONFLICT (registration_id) DO NOTHING;

-- Down Migration

DROP TRIGGER line_up_all_later ON event_details;
DROP TRIGGER line_up_all ON event_details;
DROP FUNCTION line_up_all();
