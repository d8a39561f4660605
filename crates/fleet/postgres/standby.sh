#!/bin/bash
# Runs the standby, from a new copy of the primary if its data folder holds no complete copy.
set -euo pipefail

if [ ! -s "$PGDATA/backup_manifest" ]; then # pg_basebackup writes it last
  chmod 700 "$PGDATA"
  find "$PGDATA" -mindepth 1 -delete
  pg_basebackup --pgdata="$PGDATA" --write-recovery-conf --checkpoint=fast
fi

# The name makes this the standby that the primary waits for. Once promoted, the standby waits for none.
exec postgres -c cluster_name=standby -c synchronous_standby_names=
