#!/usr/bin/env bash
# Print the public images that CES rests on by the digests of what a registry serves now, as lines for .env, which `docker compose`
# and `make images` read: deploy/pin-images.sh >>.env. With a registry's name, from there: deploy/pin-images.sh registry.example.org
set -euo pipefail

from=${1:+$1/}
declare -A images=(
    [CES_PYTHON_IMAGE]=python:3.11-slim
    [CES_DEBIAN_IMAGE]=debian:bookworm-slim
    [CES_NATS_IMAGE]=nats:2-alpine
    [CES_POSTGRES_IMAGE]=postgres:16-alpine
)
lines=()
for variable in CES_PYTHON_IMAGE CES_DEBIAN_IMAGE CES_NATS_IMAGE CES_POSTGRES_IMAGE; do
    image=$from${images[$variable]}
    said=$(docker pull "$image" 2>&1) || {
        echo "error: no registry serves $image; one that was built here has no digest of a registry: $(tail -n 1 <<<"$said")" >&2
        exit 1
    }
    digest=$(sed -n 's/^Digest: //p' <<<"$said")
    [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "error: the engine did not say which digest $image has" >&2; exit 1; }
    lines+=("$variable=$image@$digest")
done
printf '%s\n' "${lines[@]}"
