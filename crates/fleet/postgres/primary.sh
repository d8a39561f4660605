#!/bin/bash
# The image of PostgreSQL runs this once, when the primary's data folder is new.
set -euo pipefail

echo "host replication replicator all scram-sha-256" >>"$PGDATA/pg_hba.conf"

# The last line takes effect when the server starts again. As an option of the command it would block these statements, because
# nobody follows the temporary server that runs them.
psql --set=ON_ERROR_STOP=1 --set=password="$POSTGRES_PASSWORD" --username=postgres --dbname=fleet <<'END'
CREATE ROLE fleet LOGIN PASSWORD :'password';
ALTER DATABASE fleet OWNER TO fleet;
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'password';
ALTER SYSTEM SET synchronous_standby_names = 'standby';
END
