"""Measures what a lent device costs its owner, and how soon it is given back; prints a table.

    PYTHONPATH=tests/support python tests/support/measure_lending.py [rounds]

Needs root. An owner's program, in a control group of its own, does a piece of work of some milliseconds fifty times a
second: alone, beside workers on a node that is lent, and beside the same workers on a node that is not. Then its owner
reclaims the device by command: from the moment of the command until all workers are frozen, and until they are gone.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from fault_cluster import FaultCluster, recorded_job, running, star, wait_for

from ces_common.cgroups import Group, group_of, hierarchies
from ces_common.states import JOB_OVER
from ces_edge_agent.lending import command
from ces_testbed.services import agent_name

LENT, KEPT = "n1", "n2"
PIECES = 200
ENDINGS = {"ends when told": 0, "ignores SIGTERM": "stubborn"}
PROBE = f"""
import sys, time
from ces_common.cgroups import Group, hierarchies
Group(hierarchies(), sys.argv[1]).join()
for _ in range({PIECES}):
    began = time.perf_counter()
    for _ in range(60000):
        pass
    print((time.perf_counter() - began) * 1000)
    time.sleep(0.02)
"""


def piece_ms(owner: str) -> list[float]:
    """How long each piece of the owner's work took."""
    probe = subprocess.run([sys.executable, "-c", PROBE, owner], check=True, capture_output=True, text=True)
    return [float(line) for line in probe.stdout.split()]


def job(node: str, ending: object, hold: Path) -> dict[str, Any]:
    """Two workers that take a core each, for as long as a file is there."""
    hold.touch()
    made = recorded_job(f"on-{node}", 0, ending, hold, "busy", replicas=2)
    made["tasks"][0]["resources"]["cpu"] = "1"
    made["tasks"][0]["constraints"] = {"labels": {"host": node}}
    return made


def beside(cluster: FaultCluster, node: str, folder: Path, act: Callable[[str], None], ending: object = 0) -> None:
    hold = folder / node
    name = cluster.submit(job(node, ending, hold))
    cluster.await_state(name, "running", timeout_s=120)
    wait_for(lambda: all(begun(cluster, name, f"w-{rank}") for rank in range(2)), "its programs run", 120)
    try:
        act(name)
    finally:
        hold.unlink()
        cluster.client.jobs.cancel(name)
        wait_for(lambda: cluster.client.jobs.get(name).state in JOB_OVER, "the job is over")
        wait_for(lambda: not cluster.worker_pids(name), "nothing of it is left")


def begun(cluster: FaultCluster, name: str, task: str) -> bool:
    return any("record start" in line for line in cluster.client.jobs.logs(name, task))


def is_frozen(group: str) -> bool:
    """Whether the kernel lets no process of it go on."""
    roots = hierarchies()
    try:
        if "freezer" in roots:
            return Path(roots["freezer"], group, "freezer.state").read_text().strip() != "THAWED"
        return Path(roots["unified"], group, "cgroup.freeze").read_text().strip() == "1"
    except OSError:  # it is gone
        return False


def given_back(cluster: FaultCluster, name: str) -> tuple[float, float, float]:
    """Seconds from the command until all workers are frozen, and until they are gone; and the CPU seconds that they
    used from the command on."""
    state = cluster.cluster.files.agent(LENT)
    groups = [group for pid in cluster.worker_pids(name) if (group := group_of(hierarchies(), str(pid))) is not None]
    waiting, frozen = {group.name for group in groups}, 0.0
    last = before = sum(group.processor_time() or 0.0 for group in groups)
    began = time.monotonic()
    command.give(state, "reclaim")
    while any(there := [group.processor_time() for group in groups]):
        last = max(last, sum(used or 0.0 for used in there))
        for key in [key for key in waiting if is_frozen(key)]:
            waiting.remove(key)
            frozen = time.monotonic() - began
        time.sleep(0.002)
    gone = time.monotonic() - began
    command.give(state, "lend")
    return float("nan") if waiting else frozen, gone, last - before


def note(cluster: FaultCluster, found: list[tuple[float, float, float]], name: str) -> None:
    found.append(given_back(cluster, name))


def main(rounds: int) -> None:
    assert os.geteuid() == 0, "needs root"
    owner = f"ces-owner-{os.getpid()}"
    group = Group(hierarchies(), owner)
    group.create(2000, 2**30, 16)
    env = {"CES_LENT": "true", "CES_LENT_QUIET_S": "1", "CES_OWNER_GROUP": owner, "CES_LENT_BELOW": "90"}
    env["CES_RECLAIM_AT"] = "95"
    pieces: dict[str, list[float]] = {"alone": [], "beside lent": [], "beside not lent": []}
    ends: dict[str, list[tuple[float, float, float]]] = {ending: [] for ending in ENDINGS}
    with tempfile.TemporaryDirectory(prefix="ces-open-") as open_folder, tempfile.TemporaryDirectory() as folder:
        Path(open_folder).chmod(0o755)
        hold = Path(open_folder)
        with running("lnd", Path(folder), star(2)) as cluster:
            cluster.cluster.restart(agent_name(LENT), env)
            for number in range(rounds):
                print(f"round {number + 1}, load {os.getloadavg()[0]:.1f}", flush=True)
                pieces["alone"] += piece_ms(owner)
                beside(cluster, LENT, hold, lambda _: pieces["beside lent"].extend(piece_ms(owner)))
                beside(cluster, KEPT, hold, lambda _: pieces["beside not lent"].extend(piece_ms(owner)))
                for ending, found in ends.items():
                    beside(cluster, LENT, hold, partial(note, cluster, found), ENDINGS[ending])
    group.remove()
    print("| the owner's piece of work, ms | median | p95 |\n|---|---|---|")
    for what, took in pieces.items():
        print(f"| {what} | {statistics.median(took):.1f} | {statistics.quantiles(took, n=20)[-1]:.1f} |")
    print("\n| given back by command | frozen after, s | gone after, s | CPU used meanwhile, s |\n|---|---|---|---|")
    for what, times in ends.items():
        columns = [f"{statistics.median(each):.2f} ({max(each):.2f})" for each in zip(*times, strict=True)]
        print(f"| {what} | {' | '.join(columns)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
