"""Processes that die exactly where it hurts: between commit and publication, between a worker's start and its report,
in a half-made network."""

from __future__ import annotations

import pytest
from fault_cluster import FaultCluster, recorded_job

LIFE_S = 2


@pytest.mark.parametrize(
    "fault",
    [
        "commit-relay:1",  # the submission is committed, nobody has been told
        pytest.param("commit-relay:4", marks=pytest.mark.soak),
        "relay-ack:1",  # the broker has the events, the database does not know it
        pytest.param("relay-ack:3", marks=pytest.mark.soak),
        "commit-ack:1",  # the plan is committed, the broker will deliver it again
        pytest.param("commit-ack:2", marks=pytest.mark.soak),  # and so is the news from the network
    ],
)
def test_manager_dies_at(cluster: FaultCluster, fault: str) -> None:
    starts = cluster.arm("manager", fault)
    job = cluster.submit(recorded_job(f"point-{fault.replace(':', '-')}", LIFE_S))
    view = cluster.finish(job)
    cluster.await_start_of("manager", starts + 1)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1]
    assert [each.name for each in cluster.client.jobs.list(name=view.name)] == [view.name]


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_agent_dies_between_start_and_report(cluster: FaultCluster, count: int) -> None:
    pinned = recorded_job(f"point-started-{count}", LIFE_S, replicas=2)
    pinned["tasks"][0]["constraints"] = {"labels": {"host": "n2"}}
    starts = cluster.arm("agent-n2", f"container-started:{count}")
    job = cluster.submit(pinned)
    view = cluster.finish(job)
    cluster.await_start_of("agent-n2", starts + 1)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cluster.lives(job)] == [1, 1]


@pytest.mark.needs("root")
@pytest.mark.parametrize("node", ["n3", "s1"])
def test_agent_dies_in_a_half_made_network(cluster: FaultCluster, node: str) -> None:
    spread = recorded_job(f"point-half-{node}", LIFE_S, replicas=4)
    spread["tasks"][0]["resources"]["cpu"] = "1200m"  # one on each host, so that every host has a share
    starts = cluster.arm(f"agent-{node}", "network-half:1")
    job = cluster.submit(spread)
    view = cluster.finish(job)
    cluster.await_start_of(f"agent-{node}", starts + 1)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1, 1]
