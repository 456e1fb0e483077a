#!/bin/sh
# The image of PostgreSQL runs this once, when it creates its data. The role of the service owns its database and is not a
# superuser. The superuser has no password, so it can connect only through the socket in the container:
#   docker compose exec postgres psql --username postgres
psql --username postgres --dbname postgres --no-psqlrc --set ON_ERROR_STOP=1 --set password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE community LOGIN PASSWORD :'password';
CREATE DATABASE community OWNER community;
ALTER ROLE postgres PASSWORD NULL;
SQL
