-- Up Migration

-- The uploaded picture of a user. Its URL is made for each response, so that a service can move to a different domain.
-- `avatar` is the URL of a picture elsewhere. It also keeps the URLs of uploaded pictures that 1.0.0 has written, so that
-- 1.0.0 can still show them.
ALTER TABLE users ADD avatar_picture_id uuid;

-- Down Migration

-- The database does not know the URL of the service.
UPDATE users SET avatar = '/pictures/' || avatar_picture_id WHERE avatar_picture_id IS NOT NULL AND avatar IS NULL;
ALTER TABLE users DROP avatar_picture_id;
