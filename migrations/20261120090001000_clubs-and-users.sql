-- Up Migration

CREATE TABLE clubs (
  id uuid PRIMARY KEY DEFAULT new_id(),
  name text NOT NULL,
  description text NOT NULL,
  image_url text,
  -- Not a foreign key: the club keeps its head's id when that account is deleted. No one heads two clubs.
  club_head_id uuid UNIQUE,
  -- Unique, however long: an entry of a btree, and so of a UNIQUE constraint, holds at most 2,704 bytes.
  CONSTRAINT clubs_name_key EXCLUDE USING hash (name WITH =)
);

CREATE TABLE users (
  id uuid PRIMARY KEY DEFAULT new_id(),
  email text NOT NULL UNIQUE,
  -- A PHC string of argon2id, or '!' for an account that only an identity provider vouches for.
  password text NOT NULL,
  idp_id text,
  avatar text,
  first_name text NOT NULL,
  last_name text NOT NULL,
  role text NOT NULL DEFAULT 'STUDENT' CHECK (role IN ('STUDENT', 'CLUB_HEAD', 'ADMIN')),
  club_id uuid REFERENCES clubs,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  updated_at timestamptz(3) NOT NULL DEFAULT clock_timestamp()
);

CREATE TRIGGER set_updated_at BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION set_updated_at();

-- GET /users
CREATE INDEX users_newest ON users (created_at DESC, id);
-- GET /clubs: members
CREATE INDEX users_of_club ON users (club_id, id);

-- Down Migration

DROP TABLE users;
DROP TABLE clubs;
