-- Up Migration

-- When an event was changed last: calendars that subscribe to it want to know. The events that are there already have
-- the time of this statement, which rewrites none of them.
ALTER TABLE events ADD updated_at timestamptz(3) NOT NULL DEFAULT statement_timestamp();

CREATE TRIGGER set_updated_at BEFORE UPDATE ON events FOR EACH ROW EXECUTE FUNCTION set_updated_at();

-- Down Migration

DROP TRIGGER set_updated_at ON events;
ALTER TABLE events DROP updated_at;
