"""What the scheduler decided in a run, the simulator's code decides alike: the same jobs in the same order, with the
same plans."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.progress import Progress
from waiting import answers, wait_for

from ces_client.audit_inputs import events_until_now
from ces_core.queue.record import read_record
from ces_core.registry import get_solver
from ces_experiments.control_plane.queue.load import QueueLoad, job
from ces_experiments.control_plane.queue.run import drive
from ces_experiments.control_plane.simulated_cluster import central_services
from ces_sim.replay import replay
from ces_testbed.services import SCHEDULER

SOLVER = "greedy"  # with the same answer whenever it is asked; one with a time limit need not have that
LOAD = QueueLoad(nodes=8, jobs=30, run_s=1)


@pytest.mark.timeout(600)
def test_a_run_of_the_service_is_decided_alike_by_the_simulators_code(tmp_path: Path) -> None:
    record, queue = tmp_path / "record", tmp_path / "queue.yaml"
    queue.write_text("{bound: 2s, overdue: 0.5}")  # so that some jobs are overdue, and room is kept for them
    jobs = {file.name: file for file in (job(LOAD, index) for index in range(LOAD.jobs))}
    with central_services(queue=queue) as cluster:
        how = {"CES_SOLVER": SOLVER, "CES_SOLVE_TIME_LIMIT_S": "0", "CES_QUEUE_RECORD": str(record)}
        cluster.restart(SCHEDULER, how)
        ready = cluster.layout.ready_url(SCHEDULER)
        wait_for(lambda: answers(ready), "the scheduler is ready")
        with Progress(disable=True) as progress:
            asyncio.run(drive(cluster, LOAD, jobs, progress))
        with cluster.client() as client:
            ids = {each.id for each in client.jobs.list()}
            plans = {each: client.jobs.plan(each).assignments for each in ids}
            events = list(events_until_now(client))
    cycles = list(replay(record, get_solver(SOLVER)))
    for each in cycles:
        assert each.replayed == each.recorded
    starts = [start for each in cycles for start in each.recorded]
    assert {start["job"] for start in starts} == ids
    assert {start["job"]: start["assignments"] for start in starts} == plans, "what is on record is what was done"
    told = list(read_record(record))
    assert max(len(each.state.waiting) for each in told) > LOAD.jobs / 4, "there was a queue"
    assert any(each.parameters.overdue_s == 1 for each in told)
    kept = [event for event in events if (event["data"].get("queue_status") or {}).get("reserved")]
    assert kept, "room was kept for somebody"
