#!/usr/bin/env bash
# Check that the base images here behave as CES needs them, whoever built them. Leaves nothing behind.
set -euo pipefail

tag=ces-airgap-verify-$$
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=site.sh
source "$here/site.sh"
scratch=$(mktemp -d)

clean() {
    docker rm -fv "$tag-nats" "$tag-postgres" >/dev/null 2>&1 || true
    docker rmi -f "$tag" >/dev/null 2>&1 || true
    docker network rm "$tag" >/dev/null 2>&1 || true
    rm -rf "$scratch"
}
trap clean EXIT

check() {
    local what=$1
    shift
    if "$@" >"$scratch/output" 2>&1; then
        echo "verify: ok: $what"
    else
        echo "verify: FAILED: $what" >&2
        tail -n 30 "$scratch/output" >&2
        exit 1
    fi
}

# within SECONDS COMMAND...: until it succeeds.
within() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.2
    done
}

python_in_network() { docker run --rm --network "$tag" python:3.11-slim python -c "$1"; }
nats_greets() {
    python_in_network "import socket; s = socket.create_connection(('$tag-nats', 4222), 5); assert s.recv(9) == b'INFO {\"se'"
}
postgres_is_ready() { docker exec "$tag-postgres" pg_isready -q -h 127.0.0.1 -U ces -d ces; }
postgres_refuses_a_wrong_password() {
    ! docker run --rm --network "$tag" -e PGPASSWORD=wrong postgres:16-alpine psql -h "$tag-postgres" -U ces -c 'select 1'
}
builds_with_pip() {
    local flags
    mapfile -t flags < <(site_build_flags)
    docker build "${flags[@]}" --no-cache -t "$tag" -f - "$here/../locks" <<'DOCKERFILE'
FROM python:3.11-slim
COPY build.txt ./
RUN pip install --no-cache-dir --require-hashes -r build.txt && python -c 'import hatchling' && python -m venv /opt/venv
DOCKERFILE
}

check "debian:bookworm-slim runs without network, without rights, read-only" \
    docker run --rm --network none --cap-drop ALL --security-opt no-new-privileges --read-only \
    --memory 64m --cpus 0.5 --pids-limit 32 debian:bookworm-slim true
check "python:3.11-slim is Python 3.11" \
    docker run --rm python:3.11-slim python -c 'import sys; assert sys.version_info[:2] == (3, 11)'
check "python:3.11-slim builds an image with pip" builds_with_pip

check "a network can be made" docker network create "$tag"
check "nats:2-alpine takes the server's options" docker run -d --name "$tag-nats" --network "$tag" nats:2-alpine -js -m 8222
check "nats:2-alpine greets clients" within 20 nats_greets
check "nats:2-alpine answers its health check with wget" \
    docker exec "$tag-nats" wget -qO- http://127.0.0.1:8222/healthz

check "postgres:16-alpine starts" docker run -d --name "$tag-postgres" --network "$tag" \
    -e POSTGRES_USER=ces -e POSTGRES_PASSWORD=right -e POSTGRES_DB=ces postgres:16-alpine
check "postgres:16-alpine becomes ready" within 60 postgres_is_ready
check "postgres:16-alpine admits its user by password" docker run --rm --network "$tag" -e PGPASSWORD=right \
    postgres:16-alpine psql -h "$tag-postgres" -U ces -d ces -c 'create table kept (x int)'
check "postgres:16-alpine refuses a wrong password" postgres_refuses_a_wrong_password
check "postgres:16-alpine restarts" docker restart "$tag-postgres"
check "postgres:16-alpine becomes ready again" within 60 postgres_is_ready
check "postgres:16-alpine keeps its data over a restart" \
    docker exec "$tag-postgres" psql -U ces -d ces -c 'select x from kept'
