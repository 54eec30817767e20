#!/usr/bin/env bash
# Build the base images that CES needs on a machine that reaches package archives but no image registry. They carry
# the official images' names, so that Dockerfiles and compose files need no change. Needs root and a container engine.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=site.sh
source "$here/site.sh"

usage() {
    echo "usage: build-base-images.sh [--force] [IMAGE...]"
    echo "Images: ${!BUILDERS[*]} (default: all). --force builds again what is there already."
}

say() { printf 'airgap: %s\n' "$*"; }
fail() { printf 'airgap: %s\n' "$*" >&2; exit 1; }

scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

build_debian() {
    local image=$1 root=$scratch/root archives mirror
    command -v debootstrap >/dev/null || fail "debootstrap is not installed"
    archives=$(site_debian_archives)
    [ -n "$archives" ] || fail "apt knows no archive of $SUITE on this machine; set DEBIAN_MIRROR"
    mirror=${archives%% *}
    debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$root" "$mirror" >"$scratch/debootstrap.log" ||
        { tail -n 20 "$scratch/debootstrap.log" >&2; fail "debootstrap failed"; }

    awk '{ print "deb", $1, $2, "main" }' <<<"$archives" >"$root/etc/apt/sources.list"
    site_apt_conf >"$root/etc/apt/apt.conf.d/90site"
    printf 'APT::Install-Recommends "false";\nAPT::Get::Assume-Yes "true";\n' >"$root/etc/apt/apt.conf.d/90small"
    printf 'path-exclude /usr/share/%s/*\n' doc man locale >"$root/etc/dpkg/dpkg.cfg.d/small"
    # Packages must not start services while an image is built.
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod +x "$root/usr/sbin/policy-rc.d"

    find /usr/local/share/ca-certificates -name '*.crt' -exec cp {} "$root/usr/local/share/ca-certificates/" \;
    chroot "$root" update-ca-certificates >/dev/null 2>&1
    # The machine's bundle may hold more than its local certificates say.
    [ ! -e "$CA_BUNDLE" ] || cp -L "$CA_BUNDLE" "$root$CA_BUNDLE"

    rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb \
        "$root"/usr/share/{doc,man,locale}/* "$root"/var/log/*.log
    : >"$root/etc/resolv.conf"
    tar -C "$root" --one-file-system -c . |
        docker import --change 'CMD ["bash"]' \
            --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' - "$image" >/dev/null
    rm -rf --one-file-system "$root"
}

# build_from FOLDER IMAGE: a Dockerfile of this directory.
build_from() {
    local folder=$1 image=$2 flags lock
    mapfile -t flags < <(site_build_flags)
    if [ "$force" = yes ]; then flags+=(--no-cache); fi
    cp -r "$here/$folder" "$scratch/$folder"
    site_pip_conf >"$scratch/$folder/pip.conf"
    lock=$here/../locks/base-$folder.txt
    [ ! -e "$lock" ] || cp "$lock" "$scratch/$folder/requirements.txt"
    docker build "${flags[@]}" -t "$image" "$scratch/$folder" >"$scratch/build.log" 2>&1 ||
        { tail -n 40 "$scratch/build.log" >&2; fail "the build of $image failed"; }
}

build_python() { build_from python "$1"; }
build_nats() { build_from nats "$1"; }
build_postgres() { build_from postgres "$1"; }

# In the order in which they rest on each other.
ORDER=(debian:bookworm-slim python:3.11-slim nats:2-alpine postgres:16-alpine)
declare -A BUILDERS=(
    [debian:bookworm-slim]=build_debian
    [python:3.11-slim]=build_python
    [nats:2-alpine]=build_nats
    [postgres:16-alpine]=build_postgres
)

force=no
wanted=()
for argument in "$@"; do
    case $argument in
        --force) force=yes ;;
        -h | --help) usage; exit 0 ;;
        *)
            [ -n "${BUILDERS[$argument]:-}" ] || { usage >&2; exit 2; }
            wanted+=("$argument")
            ;;
    esac
done
[ ${#wanted[@]} -gt 0 ] || wanted=("${ORDER[@]}")

[ "$(id -u)" -eq 0 ] || fail "needs root (debootstrap makes a root file system)"
docker version >/dev/null 2>&1 || fail "no container engine answers"

for image in "${ORDER[@]}"; do
    [[ " ${wanted[*]} " == *" $image "* ]] || continue
    if [ "$force" = no ] && docker image inspect "$image" >/dev/null 2>&1; then
        say "$image: there already"
        continue
    fi
    say "$image: building"
    begun=$SECONDS
    replaced=$(docker image inspect -f '{{.Id}}' "$image" 2>/dev/null || true)
    "${BUILDERS[$image]}" "$image"
    # What nothing rests on any more only fills the disk; the engine refuses where something does.
    [ -z "$replaced" ] || docker rmi "$replaced" >/dev/null 2>&1 || true
    say "$image: built in $((SECONDS - begun)) s"
done
