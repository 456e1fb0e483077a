-- Up Migration

-- A window begins with the first use; further ones are counted until it ends.
DROP TABLE rate_limits;
CREATE UNLOGGED TABLE rate_limits (
  name text NOT NULL,
  -- A network, or an email or the id of a user, alone or with a network after a space.
  key text NOT NULL,
  uses integer NOT NULL,
  ends_at timestamptz NOT NULL,
  PRIMARY KEY (name, key)
);

-- Finding the rows that are past
CREATE INDEX rate_limits_ends_at ON rate_limits (ends_at);

-- No limit asks who has signed in from a network before.
DROP TABLE known_networks;
DROP TABLE sign_in_failures;

-- Each account has one row at most, so none are removed.
DROP INDEX ended_tokens_ended_at;

-- Down Migration

CREATE INDEX ended_tokens_ended_at ON ended_tokens (ended_at);

CREATE UNLOGGED TABLE sign_in_failures (
  email text NOT NULL,
  network text NOT NULL,
  times timestamptz[] NOT NULL,
  PRIMARY KEY (email, network)
);
CREATE INDEX sign_in_failures_latest ON sign_in_failures ((times[1]));
COMMENT ON TABLE sign_in_failures IS 'Unused. The next release drops it, when no instance of the one before runs.';

CREATE TABLE known_networks (
  user_id uuid REFERENCES users ON DELETE CASCADE,
  hash text,
  used_on date NOT NULL DEFAULT current_date,
  PRIMARY KEY (user_id, hash)
);
CREATE INDEX known_networks_used_on ON known_networks (used_on);

DROP TABLE rate_limits;
CREATE UNLOGGED TABLE rate_limits (
  name text NOT NULL,
  key text NOT NULL,
  times timestamptz[] NOT NULL,
  PRIMARY KEY (name, key)
);
CREATE INDEX rate_limits_latest ON rate_limits ((times[1]));
COMMENT ON COLUMN rate_limits.key IS 'A network, the id of a user, or an email and a network with a space in between';
