# CES's packages, each with the folders that it is installed from; for the scripts beside it. Sets `names` to the ones given, or to all.
# shellcheck shell=bash
declare -A needs=(
    [manager]="./libs/ces_common[db,tls] ./services/manager"
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
