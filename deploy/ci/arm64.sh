#!/usr/bin/env bash
# Make a root file system of Debian for arm64, with Python and with what the scheduler needs from outside CES, in which
# tests run the scheduler under emulation. Needs root; changes nothing of this machine but the folder.
#
#   deploy/ci/arm64.sh [FOLDER]     default: $CES_ARM64_ROOT, else /var/cache/ces-arm64
#
# Packages and wheels are fetched for arm64 and only unpacked: nothing is run in there, so it takes seconds instead of the
# minutes of an emulated installation, and no foreign binary format is registered on this machine. Safe to run again: a
# folder that was made from the same inputs stays as it is.
set -euo pipefail

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../airgap/site.sh
source "$repository/deploy/airgap/site.sh"
cd "$repository"

say() { printf 'arm64: %s\n' "$*"; }
fail() { printf 'arm64: %s\n' "$*" >&2; exit 1; }

root=${1:-${CES_ARM64_ROOT:-/var/cache/ces-arm64}}
python=$repository/.venv/bin/python # of the version that the root has: what it compiles ahead is found there
emulator=$(command -v qemu-aarch64-static) || fail "qemu-aarch64-static is not installed (deploy/ci/prepare.sh does it)"
[ "$(id -u)" -eq 0 ] || fail "needs root"
[ -x "$python" ] || fail "no .venv here: make install"

requirements=$("$python" deploy/requirements.py ./libs/ces_common "./libs/ces_core[policy]")
made_from=$(cat "${BASH_SOURCE[0]}" constraints.txt "$emulator" - <<<"$requirements" | sha256sum | cut -d' ' -f1)
if [ "$(cat "$root/.made-from" 2>/dev/null)" = "$made_from" ]; then
    say "$root is there already"
    exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
begun=$SECONDS
new=$scratch/root
mkdir -p "$new"/{usr/bin,usr/sbin,usr/lib,dev,proc,run,etc,opt/ces/lib,opt/ces/own}
mkdir -m 1777 "$new/tmp"
ln -s usr/bin "$new/bin"
ln -s usr/sbin "$new/sbin"
ln -s usr/lib "$new/lib"
echo "root:x:0:0:root:/tmp:/bin/false" >"$new/etc/passwd"
echo "127.0.0.1 localhost" >"$new/etc/hosts"
cp "$emulator" "$new/usr/bin/qemu-aarch64-static"

say "Debian's Python for arm64"
apt=$scratch/apt
mkdir -p "$apt"/{lists,archives}/partial
: >"$apt/status"
archives=$(site_debian_archives)
[ -n "$archives" ] || fail "apt knows no archive of $SUITE on this machine; set DEBIAN_MIRROR"
awk '{ print "deb", $1, $2, "main" }' <<<"$archives" >"$apt/sources.list"
# An apt of its own, for the other architecture: this machine's apt keeps its lists, and knows of no other architecture.
apt_arm64() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false \
        -o APT::Sandbox::User=root -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" \
        -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- "$@"
}
apt_arm64 update
apt_arm64 install --download-only --yes python3.11 libstdc++6 >"$scratch/apt.log" || { cat "$scratch/apt.log" >&2; exit 1; }
for package in "$apt"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" |
        tar -x -C "$new" --keep-directory-symlink --exclude='./usr/share/doc' --exclude='./usr/share/man' \
            --exclude='./usr/share/locale'
done

say "wheels for arm64"
# What is published as source only, and is Python only: made into a wheel here.
"$python" -m pip wheel -qq --disable-pip-version-check --no-deps --no-build-isolation --no-cache-dir -c constraints.txt \
    -w "$scratch/wheels" nkeys
platforms=(--platform manylinux2014_aarch64)
for minor in {17..36}; do platforms+=(--platform "manylinux_2_${minor}_aarch64"); done # the suite's C library is 2.36
# shellcheck disable=SC2086  # a list of requirements
"$python" -m pip install -qq --disable-pip-version-check --no-warn-conflicts --root-user-action ignore --no-cache-dir \
    --target "$new/opt/ces/lib" --only-binary :all: --implementation cp --python-version 3.11 "${platforms[@]}" \
    --find-links "$scratch/wheels" -c constraints.txt $requirements

# As installing it there would have done; without this every start compiles it all, under emulation.
"$python" -m compileall -q -s "$new" "$new/usr/lib/python3.11"
echo "$made_from" >"$new/.made-from"
mkdir -p "$(dirname "$root")"
rm -rf --one-file-system "$root"
mv "$new" "$root"
say "$root: made in $((SECONDS - begun)) s; $(du -sm "$root/usr" | cut -f1) MB of Debian," \
    "$(du -sm "$root/opt" | cut -f1) MB of Python packages"
