-- One registration after another, each of a user for an event as nobody has registered before.
\set x :x + 1
\set n :x * :clients + :client_id
\set user :n % :users
\set event :n / :users
INSERT INTO floor.event_registrations (user_id, event_id)
VALUES (floor.id(:user), floor.id(:event));
