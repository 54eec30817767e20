#!/bin/bash
# Start PostgreSQL as the user postgres; the first time, make the cluster, the user and the database that
# POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB name. POSTGRES_HOST_AUTH_METHOD=trust allows an empty password.
set -euo pipefail

case ${1:-} in
    -*) set -- postgres "$@" ;;
esac
[ "${1:-}" = postgres ] || exec "$@"

if [ "$(id -u)" -eq 0 ]; then
    mkdir -p "$PGDATA"
    chown -R postgres:postgres "$PGDATA" /run/postgresql
    chmod 700 "$PGDATA"
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}

make_cluster() {
    if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$method" != trust ]; then
        echo "POSTGRES_PASSWORD is empty: set it, or POSTGRES_HOST_AUTH_METHOD=trust" >&2
        exit 1
    fi
    # initdb takes no empty password.
    local password=()
    [ -z "${POSTGRES_PASSWORD:-}" ] || password=(--pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD"))
    initdb --username="$user" --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=trust "${password[@]}"
    printf 'host all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"

    if [ "$database" != postgres ]; then
        # By socket only, so that nobody outside meets a half-made cluster.
        pg_ctl --silent --wait -o "-c listen_addresses=" start
        createdb --username="$user" "$database"
        pg_ctl --silent --wait --mode=fast stop
    fi
}

[ -s "$PGDATA/PG_VERSION" ] || make_cluster
exec "$@" -c listen_addresses='*'
