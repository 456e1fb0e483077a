-- Up Migration

-- Which mails a user wants: all, as long as they have no row. A column for each kind in lib/mail/notifications.ts.
CREATE TABLE notifications (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  registration boolean NOT NULL DEFAULT true,
  event_changed boolean NOT NULL DEFAULT true,
  event_cancelled boolean NOT NULL DEFAULT true,
  event_reminder boolean NOT NULL DEFAULT true,
  event_message boolean NOT NULL DEFAULT true,
  blog_decision boolean NOT NULL DEFAULT true
);

-- Down Migration

DROP TABLE notifications;
