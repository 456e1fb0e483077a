-- Up Migration

-- The order of the operations that write to two of them prevents a deadlock. Nobody can change users and clubs until the
-- commit, about a second for 100,000 users, so that the memberships are those of this moment.
LOCK TABLE users, clubs IN SHARE ROW EXCLUSIVE MODE;

-- A club without a row: who wants to join must ask.
CREATE TABLE club_details (
  club_id uuid PRIMARY KEY REFERENCES clubs ON DELETE CASCADE,
  joining text NOT NULL CHECK (joining IN ('open', 'request', 'closed'))
);

-- Who is a member of which clubs, private. users.club_id is the one club on the card of a person, which the contract
-- publishes with the email address. Only admins and an accepted office write it, joining a club never does.
CREATE TABLE club_members (
  user_id uuid NOT NULL,
  club_id uuid NOT NULL,
  state text NOT NULL CHECK (state IN ('requested', 'member', 'refused')),
  -- Of the person who asks, and of the organizer who refused or removed the person
  message text,
  reason text,
  -- Whether the person wants emails about new events of the club
  news boolean NOT NULL DEFAULT true,
  -- When the state began
  changed_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  -- The last refusal, until the person is accepted. So nobody gets around it by asking and leaving.
  refused_at timestamptz(3) CHECK (refused_at IS NOT NULL OR state <> 'refused'),
  -- An office that waits for the answer of the person
  offered text CHECK (offered IN ('deputy', 'head')),
  offered_by uuid,
  offered_at timestamptz(3),
  PRIMARY KEY (user_id, club_id),
  CHECK (offered IS NULL OR state = 'member'),
  CHECK ((offered IS NULL) = (offered_at IS NULL))
);

INSERT INTO club_members (user_id, club_id, state, changed_at)
SELECT id, club_id, 'member', statement_timestamp() FROM users WHERE club_id IS NOT NULL;

-- After the rows, because a check of all rows is faster than a check of each.
ALTER TABLE club_members
  ADD FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE,
  ADD FOREIGN KEY (club_id) REFERENCES clubs ON DELETE CASCADE,
  ADD FOREIGN KEY (offered_by) REFERENCES users ON DELETE SET NULL;

-- The members and the requests of a club
CREATE INDEX club_members_of_club ON club_members (club_id, state, changed_at, user_id);
-- One person at most is asked to become the head of a club.
CREATE UNIQUE INDEX club_members_next_head ON club_members (club_id) WHERE offered = 'head';
-- Erasure of the person who made an offer
CREATE INDEX club_members_offered_by ON club_members (offered_by) WHERE offered_by IS NOT NULL;
-- Deletion of old refusals
CREATE INDEX club_members_refused ON club_members (refused_at) WHERE state = 'refused';

-- A person is a member of the club on the card, whoever writes it.
CREATE FUNCTION follow_club() RETURNS trigger
LANGUAGE plpgsql
SET search_path FROM CURRENT
AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF OLD.club_id IS NOT DISTINCT FROM NEW.club_id THEN
      RETURN NULL;
    END IF;
    DELETE FROM club_members WHERE user_id = NEW.id AND club_id = OLD.club_id;
  END IF;
  INSERT INTO club_members AS known (user_id, club_id, state)
  SELECT id, club_id, 'member' FROM users WHERE id = NEW.id AND club_id IS NOT NULL
  ON CONFLICT (user_id, club_id) DO UPDATE SET
    state = 'member', message = NULL, reason = NULL, changed_at = excluded.changed_at, refused_at = NULL
  WHERE known.state <> 'member';
  RETURN NULL;
END
$$;

CREATE TRIGGER follow_club AFTER UPDATE OF club_id ON users FOR EACH ROW EXECUTE FUNCTION follow_club();
-- At the commit, because a restore of the data alone inserts the users first, and then their memberships.
CREATE CONSTRAINT TRIGGER follow_first_club AFTER INSERT ON users DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW WHEN (NEW.club_id IS NOT NULL) EXECUTE FUNCTION follow_club();

-- Down Migration

DROP TRIGGER follow_first_club ON users;
DROP TRIGGER follow_club ON users;
DROP FUNCTION follow_club();
DROP TABLE club_members;
DROP TABLE club_details;
