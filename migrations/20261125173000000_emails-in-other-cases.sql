-- Up Migration

-- Accounts whose emails differ in the case of letters only. The collation is that of bytes, which no upgrade of the
-- system changes.
CREATE INDEX users_of_email ON users (lower(email COLLATE "C"));

-- Down Migration

DROP INDEX users_of_email;
