"""The policies that CES-Multi is compared with do what their names say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.parts import Node, Task
from ces_core.model.problem import Cluster
from ces_core.queue.parameters import Parameters
from ces_core.registry import get_solver
from ces_sim.arrivals import TimedJob, poisson
from ces_sim.cluster import simulate
from ces_sim.queue_policies import EASY, RIVALS, Cycles
from ces_sim.queue_policy import Policy

GREEDY = get_solver("greedy")
POLICIES = {policy.name: policy for policy in (*RIVALS, Cycles("ces-multi", Parameters(bound_s=100)))}


def job(name: str, arrival: float, duration: float, cpu: float, *, priority: int = 50, tenant: str = "t") -> TimedJob:
    return TimedJob(name, arrival, duration, (Task("t", cpu=cpu),), (), priority, tenant, duration)


def order(policy: Policy, *jobs: TimedJob, cpu: float = 10) -> list[str]:
    """The jobs by their start."""
    outcome = simulate(Cluster.make([Node("n", cpu=cpu)], []), jobs, GREEDY, policy)
    assert all(fate.started_s is not None for fate in outcome.fates)
    return [fate.job.name for fate in sorted(outcome.fates, key=lambda fate: (fate.started_s, fate.job.arrival_s))]


def test_each_goes_by_its_own_order() -> None:
    jobs = [
        job("runs", 0, 10, 10),
        job("early", 1, 30, 10),
        job("short", 2, 10, 10),
        job("urgent", 3, 20, 10, priority=90),
    ]
    assert order(POLICIES["fcfs"], *jobs) == ["runs", "early", "short", "urgent"]
    assert order(POLICIES["sjf"], *jobs) == ["runs", "short", "urgent", "early"]
    assert order(POLICIES["priority"], *jobs) == ["runs", "urgent", "early", "short"]


def test_easy_lets_go_ahead_who_does_not_delay_the_first() -> None:
    jobs = [job("runs", 0, 10, 6), job("first", 1, 10, 8), job("too-long", 2, 9, 4), job("in-time", 3, 7, 4)]
    assert order(EASY, *jobs) == ["runs", "in-time", "first", "too-long"]
    assert order(POLICIES["fcfs-backfill"], *jobs) == ["runs", "too-long", "in-time", "first"]


def test_drf_gives_to_whom_has_least_and_las_to_whom_had_least() -> None:
    jobs = [
        job("a1", 0, 100, 6, tenant="a"),
        job("b1", 0, 20, 4, tenant="b"),
        job("b2", 1, 10, 4, tenant="b"),
        job("a2", 2, 10, 4, tenant="a"),
        job("c", 3, 10, 4, tenant="c"),
    ]
    # At 20 neither b nor c has anything, and b comes first by name; a has its share all the time.
    assert order(POLICIES["drf"], *jobs) == ["a1", "b1", "b2", "c", "a2"]
    # At 20 c has had nothing, a and b 20 seconds each; at 30 a has had 30, b still 20.
    assert order(POLICIES["las"], *jobs) == ["a1", "b1", "c", "b2", "a2"]


@pytest.mark.parametrize("name", list(POLICIES))
def test_every_policy_settles_every_job_and_gives_all_back(name: str) -> None:
    cluster = read_instance(random_instance("tight", 5, nodes=6)).cluster
    drawn = poisson(40, 0.5, 30, (1, 2, 3), 11, regime="tight")
    jobs = [replace(each, tenant=f"t{i % 3}", expected_s=each.duration_s) for i, each in enumerate(drawn)]
    outcome = simulate(cluster, jobs, GREEDY, POLICIES[name])
    assert outcome.policy == name
    assert len(outcome.accepted) > 30
    assert (outcome.cluster.node_used == cluster.node_used).all()
    assert (outcome.cluster.link_used == cluster.link_used).all()
