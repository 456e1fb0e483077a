-- Up Migration

-- Events whose reminders are in the outbox, with the date that they are about: a moved event gets others.
CREATE TABLE event_reminders (
  event_id uuid REFERENCES events ON DELETE CASCADE,
  date timestamptz(3),
  PRIMARY KEY (event_id, date)
);

-- Down Migration

DROP TABLE event_reminders;
