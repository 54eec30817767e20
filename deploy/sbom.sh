#!/usr/bin/env bash
# What each of CES's packages installs, as CycloneDX: deploy/sbom.sh FOLDER [PACKAGE...]
# Each is installed into an environment of its own, as a user would, and what is there then is written down.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$1
shift
python=${PYTHON:-python3}
lister=$(dirname "$(command -v "$python")")/cyclonedx-py
test -x "$lister" || { echo "error: cyclonedx-py is not installed beside $python: make sbom" >&2; exit 1; }

declare -A needs=(
    [manager]="./libs/ces_common[db] ./services/manager"
    [scheduler]="./libs/ces_common ./libs/ces_core[fast,policy] ./services/scheduler"
    [compute-ctl]="./libs/ces_common ./services/compute-ctl"
    [network-ctl]="./libs/ces_common ./services/network-ctl"
    [edge-agent]="./libs/ces_common ./services/edge-agent"
    [client]="./libs/ces_common ./libs/ces_client"
)
names=("$@")
test $# -gt 0 || names=(manager scheduler compute-ctl network-ctl edge-agent client)
for name in "${names[@]}"; do
    test -n "${needs[$name]:-}" || { echo "error: no package $name: there are ${!needs[*]}" >&2; exit 2; }
done

mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in "${names[@]}"; do
    echo "what $name installs"
    "$python" -m venv "$scratch/$name"
    # shellcheck disable=SC2086  # a list of packages
    "$scratch/$name/bin/pip" install -qq --disable-pip-version-check -c constraints.txt ${needs[$name]}
    "$scratch/$name/bin/pip" uninstall -qq -y pip setuptools 2>/dev/null
    "$lister" environment --output-reproducible --of JSON -o "$folder/$name.cdx.json" \
        --pyproject "$(test "$name" = client && echo libs/ces_client || echo "services/$name")/pyproject.toml" \
        "$scratch/$name/bin/python"
done
