-- Up Migration

-- Who has signed in from which network lately: failures of others there do not hold them up.
CREATE TABLE known_networks (
  user_id uuid REFERENCES users ON DELETE CASCADE,
  -- Of the email and the network, by a key that the database does not have: HMAC-SHA-256, base64url.
  hash text,
  -- The day of the last sign-in.
  used_on date NOT NULL DEFAULT current_date,
  PRIMARY KEY (user_id, hash)
);

-- Finding the rows that are past
CREATE INDEX known_networks_used_on ON known_networks (used_on);

-- Failed sign-ins for an account are counted in rate_limits. The version before counts them here while it serves.
COMMENT ON TABLE sign_in_failures IS 'Unused. The next release drops it, when no instance of the one before runs.';
COMMENT ON COLUMN rate_limits.key IS 'A network, the id of a user, or an email and a network with a space in between';

-- Down Migration

COMMENT ON COLUMN rate_limits.key IS NULL;
COMMENT ON TABLE sign_in_failures IS NULL;
DROP TABLE known_networks;
