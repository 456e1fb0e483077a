-- Up Migration

-- The tokens in the links of mails about an account, one for each purpose: a newer one takes the place of an older one.
CREATE TABLE account_tokens (
  user_id uuid REFERENCES users ON DELETE CASCADE,
  purpose text CHECK (purpose IN ('password', 'email')),
  -- SHA-256, base64url
  hash text NOT NULL UNIQUE,
  expires_at timestamptz(3) NOT NULL,
  PRIMARY KEY (user_id, purpose)
);

-- Finding the rows that are past
CREATE INDEX account_tokens_expires_at ON account_tokens (expires_at);

-- When the owner of the address was last seen to have the account; null until it is proven.
ALTER TABLE users ADD email_verified_at timestamptz(3);

-- By a trigger, since an operation, a command and SQL of an operator all change them: another email is not proven, and
-- no link that was sent before sets the password of an account that has another email or password now.
CREATE FUNCTION end_account_tokens() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF NEW.email <> OLD.email THEN
    NEW.email_verified_at := NULL;
    DELETE FROM account_tokens WHERE user_id = NEW.id;
  ELSIF NEW.password <> OLD.password THEN
    DELETE FROM account_tokens WHERE user_id = NEW.id AND purpose = 'password';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER end_account_tokens BEFORE UPDATE OF email, password ON users
  FOR EACH ROW EXECUTE FUNCTION end_account_tokens();

-- Down Migration

DROP TRIGGER end_account_tokens ON users;
DROP FUNCTION end_account_tokens();
ALTER TABLE users DROP email_verified_at;
DROP TABLE account_tokens;
