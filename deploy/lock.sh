#!/usr/bin/env bash
# The locks: each package that a service, an image or a build needs, pinned as in constraints.txt, with the hashes of all files of
# that version, whatever machine they are for. deploy/lock.sh FOLDER [NAME...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$1
shift
python=${PYTHON:-python3}
compiler=$(dirname "$(command -v "$python")")/pip-compile
test -x "$compiler" || { echo "error: pip-compile is not installed beside $python: make locks" >&2; exit 1; }

# shellcheck source=deploy/packages.sh
source deploy/packages.sh "$@"
test $# -gt 0 || names=("${!needs[@]}")

mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in "${names[@]}"; do
    echo "what $name needs"
    # shellcheck disable=SC2086  # a list of packages
    "$python" deploy/requirements.py ${needs[$name]} >"$scratch/$name.in"
    "$compiler" --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
        --no-emit-trusted-host -c constraints.txt -o "$scratch/$name.txt" "$scratch/$name.in"
    mv "$scratch/$name.txt" "$folder/$name.txt"
done
