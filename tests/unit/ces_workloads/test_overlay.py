"""Which flows each algorithm needs, and what is said where the job has not got them."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml
from wired_workers import Pairs, member

from ces_common.jobfile import JobFile
from ces_common.topologies import topology_pairs
from ces_workloads.kinds import KINDS
from ces_workloads.overlay import MissingFlow

EXAMPLES = Path(__file__).parents[3] / "examples" / "jobs"


def neighbours(algorithm: str, rank: int, world_size: int, pairs: Pairs) -> tuple[list[int], list[int]]:
    found = KINDS[algorithm].connections(member(rank, world_size, pairs))
    return [peer.rank for peer in found.sends], [peer.rank for peer in found.hears]


@pytest.mark.parametrize(
    ("algorithm", "topology", "size", "rank", "sends", "hears"),
    [
        ("ring", "ring", 5, 4, [0], [3]),
        ("ring", "full", 5, 4, [0], [3]),
        ("gossip", "gossip", 6, 0, [1, 2, 4, 5], [1, 2, 4, 5]),
        ("etree", "tree", 6, 0, [1, 2], [1, 2]),
        ("etree", "tree", 6, 1, [0, 3, 4], [0, 3, 4]),
        ("etree", "star", 6, 3, [0], [0]),
        ("parameter-server", "star", 6, 0, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5]),
        ("parameter-server", "full", 6, 3, [0], [0]),
    ],
)
def test_neighbours_follow_the_flows(
    algorithm: str, topology: str, size: int, rank: int, sends: list[int], hears: list[int]
) -> None:
    assert neighbours(algorithm, rank, size, topology_pairs(topology, size)) == (sends, hears)


@pytest.mark.parametrize(
    ("algorithm", "rank", "pairs", "words", "remedy"),
    [
        ("ring", 0, topology_pairs("ring", 4, "reverse"), "flow from worker-0 to worker-1", "ring"),
        ("ring", 2, [], "flow from worker-2 to worker-3", "ring"),
        ("gossip", 1, topology_pairs("ring", 4), "flow from worker-1 to worker-0", "gossip"),
        ("gossip", 1, [], "flows between worker-1 and other tasks, and the job has none", "gossip"),
        ("etree", 2, topology_pairs("ring", 4), "flow from worker-2 to worker-1", "tree"),
        ("etree", 2, topology_pairs("full", 4), "but has flows with worker-0 and worker-1 of them", "tree"),
        ("etree", 2, [(2, 3), (3, 2)], "worker-2 must have flows with exactly one task before it", "tree"),
        ("parameter-server", 0, topology_pairs("ring", 4), "flow from worker-0 to worker-2", "star"),
        ("parameter-server", 2, topology_pairs("tree", 4)[:1], "flow from worker-2 to worker-0", "star"),
    ],
)
def test_a_missing_flow_is_named_with_the_topology_that_has_it(
    algorithm: str, rank: int, pairs: Pairs, words: str, remedy: str
) -> None:
    with pytest.raises(MissingFlow) as missing:
        neighbours(algorithm, rank, 4, pairs)
    assert words in str(missing.value)
    assert f"write `topology: {remedy}` under `flows` in the job file" in str(missing.value)


def test_a_parameter_server_alone_is_refused() -> None:
    with pytest.raises(MissingFlow, match="at least two tasks"):
        neighbours("parameter-server", 0, 1, [])


def test_the_shipped_jobs_have_the_flows_that_their_algorithms_need() -> None:
    seen = set()
    for path in EXAMPLES.glob("*.yaml"):
        job = JobFile.model_validate(yaml.safe_load(path.read_text()))
        tasks = job.expand_tasks()
        if "ces_workloads.train" not in tasks[0].command:
            continue
        algorithm = tasks[0].command[tasks[0].command.index("--algorithm") + 1]
        ranks = {task.name: task.rank for task in tasks}
        pairs = [(ranks[flow.src], ranks[flow.dst]) for flow in job.expand_flows() if flow.src in ranks]  # else data
        assert {shlex.join(task.command) for task in tasks} == {shlex.join(tasks[0].command)}, path
        for rank in range(len(tasks)):
            neighbours(algorithm, rank, len(tasks), pairs)
        if len(tasks) == 5:
            seen.add(algorithm)
    assert seen == set(KINDS)
