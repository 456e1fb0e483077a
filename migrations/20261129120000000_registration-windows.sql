-- Up Migration

-- When people can register for an event. Without a time, they always can.
ALTER TABLE event_details
  ADD opens_at timestamptz(3),
  ADD closes_at timestamptz(3),
  ADD CONSTRAINT event_details_window CHECK (opens_at < closes_at);

-- Down Migration

ALTER TABLE event_details DROP opens_at, DROP closes_at;
