-- Up Migration

-- When something that is limited was done last: sign-ins of a network that failed, registrations of a network, blogs that
-- a user submitted. Unlogged: it need not survive a crash of the server, and no request waits for the disk.
CREATE UNLOGGED TABLE rate_limits (
  name text NOT NULL,
  -- An IPv4 address, the /64 network of an IPv6 address, or the id of a user.
  key text NOT NULL,
  -- The latest first.
  times timestamptz[] NOT NULL,
  PRIMARY KEY (name, key)
);

-- Finding the rows that are past
CREATE INDEX rate_limits_latest ON rate_limits ((times[1]));

-- Down Migration

DROP TABLE rate_limits;
