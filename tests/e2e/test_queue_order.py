"""Twenty jobs of mixed sizes on emulated hosts: they start in the order that the queue had told, but for those that had
no room when others had, and the audit of the log finds nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, wait_for
from typer.testing import CliRunner
from waiting import answers

from ces_client.audit import Event
from ces_client.cli import app
from ces_common.messages.api import QueueEntry
from ces_common.states import JOB_OVER
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.record import read_record
from ces_testbed.services import SCHEDULER

HELD_S = 3600
CPU = 2000  # millicores of each host


def job(number: int) -> dict[str, Any]:
    """One to four tasks of a tenth to a whole host, alike in all that counts but size, duration and priority."""
    tasks, cpu = 1 + number % 4, (200, 500, 1000, 2000, 700)[number % 5]
    return {
        "name": f"job-{number:02}",
        "priority": (50, 20, 80)[number % 3],
        "duration": f"{1 + number % 7}m",
        "tasks": [
            {
                "name": "t",
                "replicas": tasks,
                "command": ["sleep", "0.5"],
                "resources": {"cpu": f"{cpu}m", "memory": "16Mi"},
            }
        ],
    }


JOBS = {f"job-{number:02}": job(number) for number in range(20)}


def holder(nodes: Sequence[str]) -> dict[str, Any]:
    """Holds all CPU that there is."""
    task = {"name": "t", "replicas": len(nodes), "command": ["sleep", str(HELD_S)]}
    resources = {"cpu": f"{CPU}m", "memory": "16Mi"}
    return {"name": "holder", "duration": f"{HELD_S}s", "tasks": [task | {"resources": resources}]}


def told(cluster: FaultCluster, holding: str) -> list[QueueEntry]:
    """The queue in the scheduler's own order, once all wait in it and know for what. Jobs that it has not reported by
    then come after the others, by priority and age: the scores tell."""
    entries: list[QueueEntry] = []

    def all_told() -> bool:
        remarks: list[str] = []
        entries[:] = cluster.client.queue(on_remark=remarks.append)
        if remarks:  # a scheduler that is slow to answer: the order is that of priority and age
            return False
        statuses = [each.queue_status for each in entries]
        told = [each for each in statuses if each is not None and each.held_by == [holding]]
        scores = [each.score.total for each in told]
        return len(told) == len(statuses) == len(JOBS) and scores == sorted(scores, reverse=True)

    wait_for(all_told, "all jobs know what they wait for")
    return entries


def cpu_of(name: str) -> int:
    """Millicores of each of the job's tasks, which are all alike."""
    return int(JOBS[name]["tasks"][0]["resources"]["cpu"].removesuffix("m"))


def fits(job: WaitingJob, free: Mapping[str, float]) -> bool:
    """Whether there was room for the job: its tasks are alike, so counting them tells."""
    problem = job.problem
    cpu, *_ = problem.demand[:, 0].tolist()
    may = dict(zip(problem.cluster.topology.nodes, problem.allowed[0].tolist(), strict=True))
    return sum(left // cpu for node, left in free.items() if may[node]) >= len(problem.tasks)


def committed(events: Sequence[Event], jobs: Mapping[str, str]) -> list[str]:
    """The names of the jobs in the order in which they were given their places. ``jobs``: id -> name."""
    plans = [event["data"]["job"] for event in events if event["type"] == "ces.v1.plan.committed"]
    return [jobs[job] for job in plans if job in jobs]


@pytest.fixture
def record(cluster: FaultCluster, tmp_path: Path) -> Iterator[Path]:
    """What the scheduler sees and does in each cycle."""
    file = tmp_path / "record"
    for env in ({"CES_QUEUE_RECORD": str(file)}, {}):
        cluster.cluster.restart(SCHEDULER, env)
        wait_for(lambda: answers(cluster.cluster.layout.ready_url(SCHEDULER)), "the scheduler is ready")
        if env:
            yield file


@pytest.mark.timeout(600)
def test_twenty_jobs_start_in_the_order_that_they_were_told(
    cluster: FaultCluster, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding = cluster.submit(holder(cluster.nodes))
    cluster.await_state(holding, "running")
    jobs = {cluster.submit(each): name for name, each in JOBS.items()}
    queue = told(cluster, holding)
    assert [entry.position for entry in queue] == list(range(1, len(JOBS) + 1))
    until = cluster.client.jobs.get(holding).submitted_at + timedelta(seconds=HELD_S)
    for entry in queue:
        assert entry.reason is not None
        assert entry.queue_status is not None
        assert entry.queue_status.start_at is not None
        assert entry.queue_status.start_at >= until, "nothing is free before the holder has ended"
    cluster.client.jobs.cancel(holding)
    wait_for(
        lambda: all(cluster.client.jobs.get(each).state in JOB_OVER for each in jobs), "all jobs end", 240, pause_s=0.5
    )
    assert {cluster.client.jobs.get(each).state for each in jobs} == {"succeeded"}

    order = [entry.name for entry in queue]
    started = []
    for look in read_record(record):
        cluster_then = look.state.ledger.cluster
        free = dict(zip(cluster_then.topology.nodes, cluster_then.node_free[0].tolist(), strict=True))
        waiting = {jobs[each.name]: each for each in look.state.waiting if each.name in jobs}
        for start in [each for each in look.starts if each["job"] in jobs]:
            name = jobs[start["job"]]
            for other in order[: order.index(name)]:
                had_room = other in waiting and fits(waiting[other], free)
                assert not had_room, f"{name} has overtaken {other}, which had room"
            waiting.pop(name)
            started.append(name)
            for node in start["assignments"].values():
                free[node] -= cpu_of(name)
    assert started == committed(cluster.events(), jobs), "what is on record is what was done"
    assert set(started) == set(JOBS)
    assert started[0] == order[0]

    cluster.check()
    monkeypatch.setenv("CES_URL", cluster.cluster.url)
    monkeypatch.setenv("CES_TOKEN", cluster.cluster.token)
    audited = CliRunner().invoke(app, ["audit", "--finished", "-o", "json"])
    verdict = json.loads(audited.stdout)
    assert (audited.exit_code, verdict["findings"], verdict["unjudged"]) == (0, [], [])
    assert max(peak["share"] for peak in verdict["peaks"] if peak["what"] == "cpu") == 1
