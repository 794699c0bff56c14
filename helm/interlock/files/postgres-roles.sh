#!/bin/sh
# The service's role: it may add and read rows; `interlock audit migrate` grants it no more.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$INTERLOCK_SERVICE_PASSWORD" -U "$POSTGRES_USER" -d "$POSTGRES_DB" <<'SQL'
CREATE ROLE interlock_service LOGIN PASSWORD :'password';
SQL
