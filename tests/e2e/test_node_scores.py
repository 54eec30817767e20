"""A real agent that measures its node: what a quota leaves of it, and what others take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fault_cluster import FaultCluster, running, star
from waiting import wait_for

from ces_common.cgroups import UNIFIED, Group, hierarchies
from ces_common.messages.scores import Measured, Measurement, NodeScores, ScoreReport
from ces_common.scores import is_noisy, score_of, scores_of, spread_of
from ces_testbed.services import agent_name

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]
NODE = "n1"
CPUS = len(os.sched_getaffinity(0))
KINDS = ("integer", "float")
SHARES = (1.0, 0.5, 0.25)
PATIENCE_S = 150.0  # for moments without others, one for each share
WITHIN = 0.07
DISTURBED = 0.02  # of a share, that others may have had


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultCluster]:
    folder = tmp_path_factory.mktemp("scores")
    with running("scores", folder, star(1), network="none", settings={"CES_MEASURE": "true"}) as cluster:
        wait_for(lambda: told(cluster) is not None, "the agent has measured its node after it has joined", 60)
        yield cluster
        cluster.check()


def told(cluster: FaultCluster) -> NodeScores | None:
    scores: NodeScores | None = cluster.client.nodes.get(NODE).scores
    return scores


def measured_again(cluster: FaultCluster) -> ScoreReport:
    """What the agent keeps in its own file: the manager hears a node that always tells something else but once a
    minute, and asking it would use the CPU that is measured."""
    file = cluster.cluster.files.agent(NODE) / "scores.json"
    before = file.stat().st_mtime_ns
    cluster.client.nodes.measure(NODE)
    wait_for(lambda: file.stat().st_mtime_ns != before, "it has measured again", 60, pause_s=0.25)
    return ScoreReport.model_validate(json.loads(file.read_text())["report"])


def all_threads(report: ScoreReport) -> dict[str, Measurement]:
    return {each.kind: each for each in report.measurements if each.kind in KINDS and each.threads == CPUS}


@contextmanager
def quota_of(pid: int) -> Iterator[Callable[[int], object]]:
    """Limits a process, and what it starts from now on, to so many millicores."""
    roots = hierarchies()
    group = Group(roots, f"ces-scores-{os.getpid()}")
    group.create(cpu=1000 * CPUS, memory=2**40, pids=4096)
    root = Path(roots.get(UNIFIED) or roots["cpu"])
    lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    home = next(path for _, names, path in lines if "cpu" in names.split(",") or (UNIFIED in roots and not names))
    (root / group.name / "cgroup.procs").write_text(str(pid))
    try:
        yield group.limit_cpu
    finally:
        (root / home.strip("/") / "cgroup.procs").write_text(str(pid))
        group.remove()


def test_what_it_tells_at_join_is_shown(cluster: FaultCluster) -> None:
    scores = told(cluster)
    assert scores is not None
    assert {each.kind for each in scores.raw} >= {"integer", "float", "memory", "network"}
    assert {each.threads for each in scores.raw if each.kind == "integer"} == {1, CPUS}
    assert scores.level is not None
    assert 0 <= scores.level <= 10  # how fast this machine is, and how busy, is not for tests
    assert {each.category for each in scores.categories} >= {"computing", "core", "memory", "communication"}


def undisturbed(share: float, others: float) -> bool:
    """Whether others had no more of the machine than what this share leaves, but for a little of the share."""
    return others <= 1 - share + DISTURBED * share


@pytest.mark.soak
@pytest.mark.timeout(PATIENCE_S + 180)
def test_a_quota_is_what_is_measured(cluster: FaultCluster) -> None:
    """Shares of the machine against the largest of them, in what all threads do together. Whatever else a machine
    does takes turns, too: so each share waits for its own moment in which it was not disturbed. A machine that is never
    quiet still tells of small shares; one that tells of less than two, of nothing."""
    pid = cluster.cluster.supervisor.pid(agent_name(NODE))
    assert pid is not None
    found: dict[float, dict[str, Measurement]] = {}
    others: dict[float, list[float]] = {share: [] for share in SHARES}
    until = time.monotonic() + PATIENCE_S
    with quota_of(pid) as limit:
        while len(found) < len(SHARES) and time.monotonic() < until:
            for share in (each for each in SHARES if each not in found):
                limit(round(1000 * CPUS * share))
                measured = all_threads(measured_again(cluster))
                others[share].append(max((each.others or 0.0 for each in measured.values()), default=1.0))
                if measured.keys() == set(KINDS) and undisturbed(share, others[share][-1]):
                    found[share] = measured
    assert len(found) >= 2, f"the machine is too busy to tell: the share that others used: {others}"
    most = max(found)
    ratios = {
        (kind, share): score_of(found[share][kind]) / score_of(found[most][kind]) for kind in KINDS for share in found
    }
    spreads = {
        share: [round(spread_of(each.rates), 3) for each in measured.values()] for share, measured in found.items()
    }
    print(f"against {most}: ratios {ratios}, spreads {spreads}, others {others}")
    assert all(abs(ratio / (share / most) - 1) <= WITHIN for (_, share), ratio in ratios.items()), ratios


def test_what_is_measured_beside_others_is_noisy(cluster: FaultCluster) -> None:
    burns = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(CPUS)]
    try:
        report = measured_again(cluster)
    finally:
        for process in burns:
            process.kill()
            process.wait()
    assert scores_of(Measured(at=datetime.now(UTC), measurements=report.measurements)).noisy
    assert len(all_threads(report)) == len(KINDS)
    assert all(is_noisy(each) for each in report.measurements if each.kind in KINDS)
