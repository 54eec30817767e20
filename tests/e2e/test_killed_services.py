"""kill -9 of any one process of the cluster while a job is on its way: the job finishes, nothing is doubled."""

from __future__ import annotations

import pytest
from fault_cluster import FaultCluster, recorded_job

CENTRAL = ["manager", "scheduler", "compute-ctl", "network-ctl", "nats"]
LIFE_S = 2
PHASES = ["submitted", "starting", *(pytest.param(phase, marks=pytest.mark.soak) for phase in ("planned", "running"))]


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("service", CENTRAL)
def test_job_outlives_a_central_service(cluster: FaultCluster, service: str, phase: str) -> None:
    starts = cluster.cluster.supervisor.starts(service)
    job = cluster.submit(recorded_job(f"kill-{service}-{phase}", LIFE_S))
    if phase == "planned":
        cluster.await_state(job, "planned", "preparing", "starting", "running")
    elif phase == "starting":
        cluster.await_state(job, "starting", "running")
    elif phase == "running":
        cluster.await_state(job, "running")
    cluster.cluster.kill(service)
    view = cluster.finish(job)
    cluster.await_start_of(service, starts + 1)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1]


def test_agent_finds_its_workers_again(cluster: FaultCluster) -> None:
    job = cluster.submit(recorded_job("kill-agent", 6))
    view = cluster.await_state(job, "running")
    pids = cluster.worker_pids(job)
    assert len(pids) == 3
    service = f"agent-{view.placement[0].node}"
    starts = cluster.cluster.supervisor.starts(service)
    cluster.cluster.kill(service)
    cluster.await_start_of(service, starts + 1)
    assert cluster.worker_pids(job) == pids
    view = cluster.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1]


@pytest.mark.parametrize("phase", ["submitted", "planned", "starting"])
def test_job_outlives_an_agent_on_its_way_there(cluster: FaultCluster, phase: str) -> None:
    job = cluster.submit(recorded_job(f"kill-agents-{phase}", LIFE_S))
    if phase == "planned":
        cluster.await_state(job, "planned", "preparing", "starting", "running")
    elif phase == "starting":
        cluster.await_state(job, "starting", "running")
    for node in cluster.nodes:
        cluster.cluster.kill(f"agent-{node}")
    view = cluster.finish(job)
    assert (view.attempt, view.restarts) == (1, 0)
    assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1]
