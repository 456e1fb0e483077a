-- Up Migration

-- Revoking tokens cancels a change of the email address, because a stranger may have asked for it. A trigger does this,
-- because operations, commands and the SQL of operators revoke tokens. Locks revoked_tokens, for a moment.
CREATE FUNCTION cancel_email_change() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM account_tokens WHERE user_id = NEW.user_id AND new_email IS NOT NULL;
  RETURN NULL;
END
$$;

CREATE TRIGGER cancel_email_change AFTER INSERT OR UPDATE ON revoked_tokens
  FOR EACH ROW EXECUTE FUNCTION cancel_email_change();

-- Down Migration

DROP TRIGGER cancel_email_change ON revoked_tokens;
DROP FUNCTION cancel_email_change();
