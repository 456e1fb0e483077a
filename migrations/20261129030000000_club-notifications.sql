-- Up Migration

-- The switches of the emails about requests and decisions in clubs, and about their new events. Nobody can read the table
-- for a moment.
ALTER TABLE notifications
  ADD COLUMN club boolean NOT NULL DEFAULT true,
  ADD COLUMN club_news boolean NOT NULL DEFAULT true;

-- Down Migration

ALTER TABLE notifications DROP COLUMN club, DROP COLUMN club_news;
