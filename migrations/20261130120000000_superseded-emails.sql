-- Up Migration

-- An email that tells a state, for example that a person has a seat, replaces the emails that wait to tell an earlier
-- state. Otherwise, a member who leaves and takes a seat again and again adds rows without end: 410,000 rows, and a
-- sender takes 5 seconds to find the next email of anybody. An email that a sender has claimed stays, because it may
-- arrive. Waits for no lock: SKIP LOCKED, because a sender and an erasure lock emails as well.
CREATE FUNCTION supersede_emails() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM emails WHERE id IN (
    SELECT earlier.id FROM added JOIN emails AS earlier USING (user_id, template)
    WHERE template IN ('registration', 'seat', 'seat-removed', 'club-decision')
      AND earlier.id < added.id AND earlier.status = 'pending' AND earlier.attempts = 0
      AND coalesce(earlier.data #>> '{event,id}', earlier.data ->> 'event', earlier.data ->> 'club')
        = coalesce(added.data #>> '{event,id}', added.data ->> 'event', added.data ->> 'club')
      AND earlier.data ->> 'kind' IS NOT DISTINCT FROM added.data ->> 'kind'
    FOR UPDATE OF earlier SKIP LOCKED
  );
  RETURN NULL;
END
$$;

CREATE TRIGGER supersede_emails AFTER INSERT ON emails
  REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION supersede_emails();

-- Down Migration

DROP TRIGGER supersede_emails ON emails;
DROP FUNCTION supersede_emails();
