-- What routes/events/queries.ts has the database do, on the real tables; the ids are looked up by number.
\set x :x + 1
\set n :x * :clients + :client_id
\set user :n % :users
\set event :n / :users
WITH registration AS (
  INSERT INTO event_registrations (user_id, event_id)
  SELECT (SELECT id FROM floor.real_users WHERE number = :user), (SELECT id FROM floor.real_events WHERE number = :event)
  ON CONFLICT (user_id, event_id) DO NOTHING
  RETURNING *
)
SELECT
  registration.id, user_id AS "userId", event_id AS "eventId", iso8601(registered_at) AS "registeredAt",
  json_build_object('title', title) AS event,
  json_build_object('firstName', first_name, 'lastName', last_name) AS user
FROM registration
  JOIN events ON events.id = event_id
  JOIN users ON users.id = user_id;
