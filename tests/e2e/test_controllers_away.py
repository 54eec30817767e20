"""Both controllers are away for longer than a job's deadlines: it waits, says for whom, and runs at its first try."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from fault_cluster import FaultCluster, recorded_job, running, star
from waiting import wait_for

DEADLINES = {f"CES_{state}_DEADLINE_S": "4" for state in ("PLANNED", "PREPARING", "STARTING")}


def waits_for(cluster: FaultCluster, job: str, controller: str) -> bool:
    view = cluster.ask(lambda: cluster.client.jobs.get(job))
    assert view.attempt == 1, view.reason
    return (view.reason or "").startswith(f"waiting for {controller}, not heard for ")


def test_jobs_wait_for_controllers_that_are_away(tmp_path: Path) -> None:
    with running("away", tmp_path, star(3), network="none", settings=DEADLINES) as cluster:
        away = ("network-ctl", "compute-ctl")
        for controller in away:
            cluster.cluster.kill(controller, stay_down=True)
        job = cluster.submit(recorded_job("patient", 1))
        for controller in away:
            wait_for(partial(waits_for, cluster, job, controller), f"it waits for {controller}", 60)
            cluster.cluster.restart(controller)
        view = cluster.finish(job)
        assert (view.attempt, view.restarts) == (1, 0)
        assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1]
        cluster.check()
