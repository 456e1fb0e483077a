-- Up Migration

-- The token of an unsubscribe link is derived from the user and the template, so emails share it. Version 1.0.0 finds an
-- email by the hash of its token.
DROP INDEX emails_token_hash;
CREATE INDEX emails_token_hash ON emails (token_hash) WHERE token_hash IS NOT NULL;

-- Down Migration

UPDATE emails SET token_hash = NULL WHERE EXISTS (
  SELECT FROM emails AS later WHERE later.token_hash = emails.token_hash AND later.id > emails.id
);
DROP INDEX emails_token_hash;
CREATE UNIQUE INDEX emails_token_hash ON emails (token_hash) WHERE token_hash IS NOT NULL;
