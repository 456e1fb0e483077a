-- Up Migration

-- The latest failures of sign-ins, by account and address. Unlogged: they need not survive a crash of the server, and no
-- sign-in waits for the disk.
CREATE UNLOGGED TABLE sign_in_failures (
  -- As supplied, whether it has an account or not; the service takes emails of at most 254 characters.
  email text NOT NULL,
  -- An IPv4 address, or the /64 network of an IPv6 address.
  network text NOT NULL,
  -- The latest first.
  times timestamptz[] NOT NULL,
  PRIMARY KEY (email, network)
);

-- Finding the rows that are past
CREATE INDEX sign_in_failures_latest ON sign_in_failures ((times[1]));

-- Down Migration

DROP TABLE sign_in_failures;
