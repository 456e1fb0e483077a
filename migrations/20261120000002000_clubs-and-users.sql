-- Up Migration

CREATE TABLE clubs (
  id uuid PRIMARY KEY DEFAULT new_id(),
  name text NOT NULL,
  description text NOT NULL,
  image_url text,
  -- A user can head one club. Without a foreign key: the club keeps the id when that account is deleted.
  club_head_id uuid UNIQUE,
  -- Unique at any length. A UNIQUE constraint could not hold a name of more than 2,704 bytes.
  CONSTRAINT clubs_name_key EXCLUDE USING hash (name WITH =)
);

CREATE TABLE users (
  id uuid PRIMARY KEY DEFAULT new_id(),
  email text NOT NULL UNIQUE,
  -- When the owner of the email address was last seen to have the account. Null means that it is not verified.
  email_verified_at timestamptz(3),
  -- A PHC string of argon2id, or '!' for an account that has only an identity provider.
  password text NOT NULL,
  idp_id text,
  avatar text,
  first_name text NOT NULL,
  last_name text NOT NULL,
  role text NOT NULL DEFAULT 'STUDENT' CHECK (role IN ('STUDENT', 'CLUB_HEAD', 'ADMIN')),
  club_id uuid REFERENCES clubs,
  created_at timestamptz(3) NOT NULL DEFAULT statement_timestamp(),
  updated_at timestamptz(3) NOT NULL DEFAULT statement_timestamp()
);

CREATE TRIGGER set_updated_at BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION set_updated_at();

-- GET /users
CREATE INDEX users_newest ON users (created_at DESC, id);
-- GET /clubs: members
CREATE INDEX users_of_club ON users (club_id, id);
-- Finding an account whose email address differs in case only. An upgrade of the operating system cannot change the
-- order of the collation "C".
CREATE INDEX users_of_email ON users (lower(email COLLATE "C"));

-- Down Migration

DROP TABLE users;
DROP TABLE clubs;
