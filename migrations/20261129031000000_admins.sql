-- Up Migration

-- Emails about a club that nobody organizes go to the admins. Nobody can change users meanwhile, less than a second for
-- 100,000 users.
CREATE INDEX users_admins ON users (id) WHERE role = 'ADMIN';

-- Down Migration

DROP INDEX users_admins;
