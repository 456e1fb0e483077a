-- Up Migration

ALTER TABLE mails
  -- The last claim. The mail is composed after it, so it includes all that was committed before.
  ADD claimed_at timestamptz(3),
  -- SHA-256, base64url, of the token in the link that turns off mails of this kind. It is made with each claim.
  ADD token_hash text;

CREATE UNIQUE INDEX mails_token_hash ON mails (token_hash) WHERE token_hash IS NOT NULL;

-- Down Migration

ALTER TABLE mails DROP claimed_at, DROP token_hash;
