"""A job may be asked to wait where a placement now would cost it bandwidth for as long as it runs."""

from __future__ import annotations

import pytest

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.search.longrun import Patient
from ces_core.search.solver import SEARCH

PATIENT = Patient("patient", "", SEARCH, forgone=0.1)


def two_nodes(link_used: float) -> Problem:
    """Two tasks that need a node each, and a flow that may have 1 to 10 between them."""
    nodes = [Node(name, cpu=1.0, memory=1.0) for name in "ab"]
    links = [Link(src, dst, 10.0, bandwidth_used=link_used) for src, dst in ("ab", "ba")]
    tasks = [Task(name, cpu=1.0) for name in "xy"]
    return Problem.make(Cluster.make(nodes, links), tasks, [Flow("x", "y", 1.0, 10.0)])


def test_a_place_with_little_of_the_bandwidth_is_declined() -> None:
    answer = PATIENT.solve(two_nodes(link_used=8.0))
    assert answer.plan is None
    assert answer.reason is not None
    assert answer.reason.code == "poor-bandwidth"
    assert not answer.reason.permanent
    assert answer.reason.text() == (
        "waits for more bandwidth: now its flows would be satisfied to 11 %, 90 % are wanted"
    )


@pytest.mark.parametrize("link_used", [0.0, 0.5])
def test_a_place_with_nearly_all_of_it_is_taken(link_used: float) -> None:
    problem = two_nodes(link_used)
    assert PATIENT.solve(problem).plan == SEARCH.solve(problem).plan is not None


def test_a_job_that_could_not_have_more_alone_does_not_wait() -> None:
    """The links are narrow even when idle: waiting would not help."""
    nodes = [Node(name, cpu=1.0, memory=1.0, memory_used=0.5) for name in "ab"]
    links = [Link(src, dst, 3.0) for src, dst in ("ab", "ba")]
    tasks = [Task(name, cpu=1.0) for name in "xy"]
    problem = Problem.make(Cluster.make(nodes, links), tasks, [Flow("x", "y", 1.0, 10.0)])
    assert PATIENT.solve(problem).plan is not None


@pytest.mark.parametrize("seed", range(8))
def test_on_an_idle_cluster_nobody_waits(seed: int) -> None:
    """Otherwise it would wait for ever."""
    problem = read_instance(random_instance("scarce", seed, tasks=5))
    cluster = problem.cluster
    idle = Problem.make(cluster.with_used(0 * cluster.node_used, 0 * cluster.link_used), problem.tasks, problem.flows)
    assert (Patient("", "", SEARCH, forgone=0.0).solve(idle).plan is None) == (SEARCH.solve(idle).plan is None)


def test_what_has_no_place_at_all_is_told_why() -> None:
    problem = two_nodes(link_used=9.5)
    answer, plain = PATIENT.solve(problem), SEARCH.solve(problem)
    assert answer.reason == plain.reason is not None
