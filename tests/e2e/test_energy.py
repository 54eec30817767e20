"""Energy of a running cluster, one node of which was told what it uses and the others were not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ces_command import ces
from fault_cluster import FaultCluster, recorded_job, wait_for

from ces_testbed.services import agent_name

pytestmark = pytest.mark.needs("root")
MODELLED, UNKNOWN = "n1", "n2"
MODEL = {"CES_POWER_IDLE": "5", "CES_POWER_PEAK": "15", "CES_POWERCAP": "/nowhere"}


@pytest.fixture
def metered(cluster: FaultCluster) -> Iterator[FaultCluster]:
    cluster.cluster.restart(agent_name(MODELLED), MODEL)
    try:
        yield cluster
    finally:
        cluster.cluster.restart(agent_name(MODELLED))


def test_what_a_job_used_is_told_with_how_it_is_known(metered: FaultCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    job = recorded_job("warm", 600, replicas=1)
    [task] = job["tasks"]
    job["tasks"] = [task | {"name": node, "constraints": {"labels": {"host": node}}} for node in (MODELLED, UNKNOWN)]
    del job["flows"]
    running = metered.submit(job)
    metered.await_state(running, "running")
    energy = metered.client.energy
    wait_for(lambda: energy.job(running).energy.modelled > 0, "what the job uses is written down")
    of_job, of_node = energy.job(running), energy.node(MODELLED)
    assert (of_job.energy.measured, of_job.unknown) == (0, 1)
    assert {task.task.rpartition("-")[0]: task.energy is None for task in of_job.tasks} == {
        MODELLED: False,
        UNKNOWN: True,
    }
    assert (of_node.meter, [each.job for each in of_node.jobs]) == ("model", [running])
    assert of_node.energy is not None
    parts = of_node.jobs[0].energy.joules + of_node.other_jobs.joules + of_node.system.joules
    assert parts == pytest.approx(of_node.energy.joules, abs=1e-5)
    assert of_node.energy.watts == pytest.approx((5 + 15) / 2, abs=5 + 1e-3)  # micro-joules are rounded
    assert energy.node(UNKNOWN).energy is None

    monkeypatch.setenv("CES_URL", metered.cluster.url)
    monkeypatch.setenv("CES_TOKEN", metered.cluster.token)
    assert "modelled" in ces("energy").stdout
    assert "unknown" in ces("energy", running).stdout
    assert "energy" in ces("describe", "node", MODELLED).stdout
    metered.client.jobs.cancel(running)
    metered.await_state(running, "cancelled")
