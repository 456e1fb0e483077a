-- Up Migration

-- Makes a time-ordered UUID (RFC 9562, version 7): 48 bits of milliseconds, then random bits, so that new rows are
-- neighbours in every index. PostgreSQL 18 has uuidv7(), but 14 to 17 do not.
CREATE FUNCTION new_id() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
  SELECT encode(
    set_bit(
      set_bit(
        overlay(
          uuid_send(gen_random_uuid())
          PLACING substring(int8send(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
          FROM 1 FOR 6
        ),
        52, 1
      ),
      53, 1
    ),
    'hex'
  )::uuid
$$;

-- Writes a time as every response does: 2026-01-31T09:30:00.000Z.
CREATE FUNCTION iso8601(timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
AS $$
  SELECT to_char($1 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

CREATE FUNCTION set_updated_at() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  NEW.updated_at := clock_timestamp();
  RETURN NEW;
END
$$;

-- Down Migration

DROP FUNCTION set_updated_at();
DROP FUNCTION iso8601(timestamptz);
DROP FUNCTION new_id();
