-- Up Migration

-- When a person last said whether they come. A draw gives people a new place in line, so `since` does not tell this.
ALTER TABLE event_answers ADD answered_at timestamptz(3) NOT NULL DEFAULT clock_timestamp();

-- Down Migration

ALTER TABLE event_answers DROP answered_at;
