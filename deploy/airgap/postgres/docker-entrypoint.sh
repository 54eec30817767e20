#!/bin/bash
# Start PostgreSQL as the user postgres; the first time, make the cluster, the user and the database that
# POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB name. POSTGRES_HOST_AUTH_METHOD=trust allows an empty password.
set -Eeuo pipefail

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
    if [ -n "$(ls -A "$PGDATA")" ]; then
        echo "$PGDATA holds files but no cluster: give an empty folder" >&2
        exit 1
    fi
    # Stopped half-way, it must begin from the start the next time.
    trap 'find "$PGDATA" -mindepth 1 -delete; exit 1' INT TERM ERR
    local options=(--username="$user" --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=trust)
    if [ -n "${POSTGRES_PASSWORD:-}" ]; then # initdb refuses an empty one
        initdb "${options[@]}" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD")
    else
        initdb "${options[@]}"
    fi
    printf 'host all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"

    if [ "$database" != postgres ]; then
        # Single-user mode: nobody outside meets a half-made cluster.
        printf 'CREATE DATABASE "%s"\n' "${database//\"/\"\"}" | postgres --single -D "$PGDATA" postgres >/dev/null
    fi
    trap - INT TERM ERR
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then make_cluster; fi
exec "$@" -c listen_addresses='*'
