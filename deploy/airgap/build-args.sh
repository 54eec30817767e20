#!/usr/bin/env bash
# Print the flags that a `docker build` needs on this machine: docker build $(deploy/airgap/build-args.sh) ...
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=site.sh
source "$(dirname "${BASH_SOURCE[0]}")/site.sh"
site_build_flags | tr '\n' ' '
