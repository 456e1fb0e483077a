-- Each transaction of 64 clients registers the next of 5,000 users for an event, then for the next event.
\set x :x + 1
\set n :x * 64 + :client_id
\set user :n % 5000
\set event :n / 5000
INSERT INTO baseline.event_registrations (user_id, event_id)
VALUES (baseline.id(:user), baseline.id(:event));
