-- Up Migration

-- Users whose tokens were revoked. A token is accepted if its epoch equals the epoch here. Without a foreign key: the
-- deletion of an account must not make a revoked token valid.
CREATE TABLE revoked_tokens (
  user_id uuid PRIMARY KEY,
  -- Random, because a number could come again after a fail-over or a restore.
  epoch uuid NOT NULL DEFAULT gen_random_uuid(),
  revoked_at timestamptz(3) NOT NULL DEFAULT statement_timestamp()
);

-- The tokens in the links of emails about an account. A new token replaces the previous one of the same purpose.
CREATE TABLE account_tokens (
  user_id uuid REFERENCES users ON DELETE CASCADE,
  purpose text CHECK (purpose IN ('password', 'email')),
  -- SHA-256, base64url
  hash text NOT NULL UNIQUE,
  expires_at timestamptz(3) NOT NULL,
  -- The email address that the account gets by this token; null to verify the present one.
  new_email text,
  PRIMARY KEY (user_id, purpose)
);

-- Deleting expired rows
CREATE INDEX account_tokens_expires_at ON account_tokens (expires_at);

-- A new email address is not verified, and earlier links must not set the password of an account that has a new email
-- address or password, nor give the account a new address. A trigger does this, because operations, commands and the SQL of operators change both.
CREATE FUNCTION revoke_account_tokens() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF NEW.email <> OLD.email THEN
    NEW.email_verified_at := NULL;
    DELETE FROM account_tokens WHERE user_id = NEW.id;
  ELSIF NEW.password <> OLD.password THEN
    DELETE FROM account_tokens WHERE user_id = NEW.id AND (purpose = 'password' OR new_email IS NOT NULL);
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER revoke_account_tokens BEFORE UPDATE OF email, password ON users
  FOR EACH ROW EXECUTE FUNCTION revoke_account_tokens();

-- Users whose registrations a calendar app can read by a secret URL.
CREATE TABLE calendar_tokens (
  user_id uuid PRIMARY KEY REFERENCES users ON DELETE CASCADE,
  -- SHA-256, base64url
  -- GET /feeds/me/:token.ics
  token_hash text NOT NULL UNIQUE,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp()
);

-- Uses of what is limited. A window begins with the first use. Unlogged: the counts may be lost in a crash of the
-- server, and no request waits for the disk.
CREATE UNLOGGED TABLE rate_limits (
  name text NOT NULL,
  -- A network, or an email address or the id of a user, alone or with a network after a space.
  key text NOT NULL,
  uses integer NOT NULL,
  ends_at timestamptz NOT NULL,
  PRIMARY KEY (name, key)
);

-- Deleting expired rows
CREATE INDEX rate_limits_ends_at ON rate_limits (ends_at);

-- Down Migration

DROP TABLE rate_limits;
DROP TABLE calendar_tokens;
DROP TRIGGER revoke_account_tokens ON users;
DROP FUNCTION revoke_account_tokens();
DROP TABLE account_tokens;
DROP TABLE revoked_tokens;
