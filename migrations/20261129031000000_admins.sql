-- Up Migration

-- If a club has no organizers, its emails go to the admins. This locks the table users against changes, for less than a
-- second with 100,000 users.
CREATE INDEX users_admins ON users (id) WHERE role = 'ADMIN';

-- Down Migration

DROP INDEX users_admins;
