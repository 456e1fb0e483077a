-- Up Migration

-- A restore of the data alone copies users before pictures, so the avatars are checked at its end. Locks users, for a
-- moment.
ALTER TABLE users ALTER CONSTRAINT users_avatar_picture_id_fkey DEFERRABLE INITIALLY DEFERRED;

-- Down Migration

ALTER TABLE users ALTER CONSTRAINT users_avatar_picture_id_fkey NOT DEFERRABLE;
