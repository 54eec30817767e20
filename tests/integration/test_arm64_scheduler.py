"""The scheduler with its learned solver on arm64, emulated, in a cluster whose other parts are this machine's: it
decides by the policy, and what it proposes is committed and runs. ``-s`` shows what the install takes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import arm64
import httpx
import pytest
from fault_cluster import FaultCluster, running, star, wait_for

from ces_core.learned.policy import SHIPPED, load_policy

pytestmark = [pytest.mark.needs("root", "arm64"), pytest.mark.timeout(600)]
READY_S = 300.0  # it is emulated
RING = {
    "name": "ring",
    "tasks": [
        {"name": "w", "replicas": 4, "command": ["sleep", "0.2"], "resources": {"cpu": "700m", "memory": "100Mi"}}
    ],
    "flows": {"topology": "ring", "bandwidth": {"min": "10Mbit", "max": "40Mbit"}},
}


def ready(cluster: FaultCluster) -> bool:
    try:
        return cluster.ready("scheduler") is None
    except httpx.HTTPError:
        return False


def megabytes(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def resident_mib(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_plan_made_on_arm64_by_the_policy_is_committed_and_runs(tmp_path: Path) -> None:
    own = tmp_path / "own"
    arm64.install(own)
    with running("arm", tmp_path / "cluster", star(5), network="none") as cluster:
        supervisor = cluster.cluster.supervisor
        cluster.cluster.kill("scheduler", stay_down=True)
        began = time.monotonic()
        service = arm64.scheduler(cluster.cluster.layout, own, {"CES_SOLVER": "imitation"})
        supervisor.add(service)
        try:
            wait_for(lambda: ready(cluster), "the emulated scheduler is ready", READY_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{service.log.read_text()[-4000:]}") from None
        ready_s = time.monotonic() - began
        pid = supervisor.pid("scheduler-arm64")
        assert pid is not None
        started = f"ready after {ready_s:.1f} s, {cpu_s(pid):.1f} s of CPU time, with {resident_mib(pid):.0f} MiB"
        assert Path(f"/proc/{pid}/exe").readlink().name == Path(arm64.EMULATOR).name
        job = cluster.submit(RING)
        cluster.finish(job)
        plan = cluster.client.jobs.plan(job)
        assert plan.solver == "imitation"
        policy = plan.considered["policy"]
        assert policy["version"] == load_policy(SHIPPED).version
        assert policy["probabilities"].keys() == plan.assignments.keys() == {f"w-{i}" for i in range(4)}
        assert all(0 < probability <= 1 for probability in policy["probabilities"].values())
        assert [event["data"]["plan"] for event in cluster.events() if event["type"] == "ces.v1.plan.committed"] == [
            plan.plan
        ]
        assert supervisor.starts("scheduler-arm64") == 1
        print(
            f"emulated arm64: {megabytes(own):.1f} MB of CES, {megabytes(arm64.ROOT / 'opt/ces/lib'):.0f} MB of other "
            f"packages; {started}; 4 tasks on 5 nodes in {plan.considered['decision_ms']:.0f} ms, then "
            f"{resident_mib(pid):.0f} MiB, the emulator's own included"
        )
        cluster.check()
