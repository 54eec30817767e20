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

# shellcheck source=deploy/packages.sh
source deploy/packages.sh "$@"

mkdir -p "$folder"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for name in "${names[@]}"; do
    echo "what $name installs"
    "$python" -m venv "$scratch/$name"
    # shellcheck disable=SC2086  # a list of packages
    "$scratch/$name/bin/pip" install -qq --disable-pip-version-check -c constraints.txt ${needs[$name]}
    "$scratch/$name/bin/pip" uninstall -qq -y pip setuptools 2>/dev/null
    # shellcheck disable=SC2206  # the last of that list
    folders=(${needs[$name]})
    "$lister" environment --output-reproducible --of JSON -o "$folder/$name.cdx.json" \
        --pyproject "${folders[-1]}/pyproject.toml" \
        "$scratch/$name/bin/python"
done
