-- Up Migration

-- Sign-ups, changes of users, and uploads wait: ten seconds for 100,000 users with uploaded pictures. Others continue.
-- With the foreign key, the update would take three times as long.
LOCK TABLE users, pictures IN SHARE ROW EXCLUSIVE MODE;

UPDATE users SET avatar_picture_id = pictures.id
FROM pictures
WHERE pictures.id = substring(avatar FROM '/pictures/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$')::uuid;

ALTER TABLE users
  ADD CONSTRAINT users_avatar_picture_id_fkey FOREIGN KEY (avatar_picture_id) REFERENCES pictures ON DELETE SET NULL;

-- Where a picture is used
CREATE INDEX users_of_picture ON users (avatar_picture_id) WHERE avatar_picture_id IS NOT NULL;

-- Down Migration

DROP INDEX users_of_picture;
ALTER TABLE users DROP CONSTRAINT users_avatar_picture_id_fkey;
