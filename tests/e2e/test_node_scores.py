"""A real agent that measures its node: what a quota leaves of it, and what others take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fault_cluster import FaultCluster, running, star, wait_for

from ces_common.cgroups import UNIFIED, Group, hierarchies
from ces_common.messages.scores import NodeScores, RawScore
from ces_common.scores import NOISY_OTHERS
from ces_testbed.services import agent_name

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]
NODE = "n1"
CPUS = len(os.sched_getaffinity(0))
TRIES = 6  # whatever else a machine does takes turns, too
WITHIN = 0.07


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


def measured_again(cluster: FaultCluster) -> NodeScores:
    before = told(cluster)
    cluster.client.nodes.measure(NODE)
    wait_for(lambda: told(cluster) != before, "it has measured again", 60)
    found = told(cluster)
    assert found is not None
    return found


def of_kind(scores: NodeScores, kind: str, threads: int) -> RawScore:
    return next(each for each in scores.raw if (each.kind, each.threads) == (kind, threads))


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


@pytest.mark.soak
def test_a_quota_is_what_is_measured(cluster: FaultCluster) -> None:
    """A quarter and a half of the machine against all of it, in what all threads do together."""
    pid = cluster.cluster.supervisor.pid(agent_name(NODE))
    assert pid is not None
    for _ in range(TRIES):
        rates: dict[str, dict[float, RawScore]] = {"integer": {}, "float": {}}
        with quota_of(pid) as limit:
            for share in (1.0, 0.5, 0.25):
                limit(round(1000 * CPUS * share))
                scores = measured_again(cluster)
                for kind, found in rates.items():
                    found[share] = of_kind(scores, kind, CPUS)
        if all((each.others or 0.0) <= NOISY_OTHERS for found in rates.values() for each in found.values()):
            break
    else:
        pytest.fail(f"the machine was never quiet for long enough: {rates}")
    for kind, found in rates.items():
        for share in (0.5, 0.25):
            ratio = found[share].rate / found[1.0].rate
            assert abs(ratio / share - 1) <= WITHIN, f"{kind} at {share:.0%}: {ratio:.3f}"


def test_what_is_measured_beside_others_is_noisy(cluster: FaultCluster) -> None:
    burns = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(CPUS)]
    try:
        scores = measured_again(cluster)
    finally:
        for process in burns:
            process.kill()
            process.wait()
    assert scores.noisy
    assert all(each.noisy for each in scores.raw if each.kind in ("integer", "float"))
