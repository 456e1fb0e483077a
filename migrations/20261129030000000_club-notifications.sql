-- Up Migration

-- The switch of the emails about requests and decisions in clubs. Nobody can read the table for a moment.
ALTER TABLE notifications ADD COLUMN club boolean NOT NULL DEFAULT true;

-- Down Migration

ALTER TABLE notifications DROP COLUMN club;
