"""Both controllers are away for longer than a job's deadlines: it waits, says for whom, and runs at its first try."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from fault_cluster import FaultCluster, recorded_job, running, star
from waiting import wait_for

DEADLINE_S = 12  # ample for each step where nobody is away
# By then, had it run on, the deadline of `planned` would have ended: the last word was at most five seconds before the
# kill.
AWAY_S = DEADLINE_S + 8
DEADLINES = {f"CES_{state}_DEADLINE_S": str(DEADLINE_S) for state in ("PLANNED", "PREPARING", "STARTING")}


def waits_for(cluster: FaultCluster, job: str, controller: str) -> bool:
    view = cluster.ask(lambda: cluster.client.jobs.get(job))
    assert view.attempt == 1, view.reason
    found = re.match(rf"waiting for {controller}, not heard for (\d+) s", view.reason or "")
    return found is not None and int(found[1]) >= AWAY_S


def test_jobs_wait_for_controllers_that_are_away(tmp_path: Path) -> None:
    with running("away", tmp_path, star(3), network="none", settings=DEADLINES) as cluster:
        away = ("network-ctl", "compute-ctl")
        for controller in away:
            cluster.cluster.kill(controller, stay_down=True)
        job = cluster.submit(recorded_job("patient", 1))
        for controller in away:
            wait_for(partial(waits_for, cluster, job, controller), f"it waits for {controller}")
            cluster.cluster.restart(controller)
        view = cluster.finish(job)
        assert (view.attempt, view.restarts) == (1, 0)
        assert [life.incarnation for life in cluster.lives(job)] == [1, 1, 1]
        cluster.check()
