-- Up Migration

CREATE TABLE mentors (
  id uuid PRIMARY KEY DEFAULT new_id(),
  -- The Unicode order of names, the same on every server, whatever its locale.
  name text COLLATE "und-x-icu" NOT NULL,
  expertise text NOT NULL,
  image_url text NOT NULL,
  network_url text NOT NULL DEFAULT '',
  club_id uuid NOT NULL REFERENCES clubs
);

CREATE TABLE mentor_likes (
  user_id uuid NOT NULL REFERENCES users ON DELETE CASCADE,
  mentor_id uuid NOT NULL REFERENCES mentors ON DELETE CASCADE,
  created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
  -- GET /mentors/liked
  PRIMARY KEY (user_id, mentor_id)
);

-- Counting a mentor's likes, and deleting them with it
CREATE INDEX mentor_likes_of_mentor ON mentor_likes (mentor_id);

-- Down Migration

DROP TABLE mentor_likes;
DROP TABLE mentors;
