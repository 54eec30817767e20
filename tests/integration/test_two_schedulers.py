"""Two schedulers propose at once for one cluster: whatever they think, only what fits is committed."""

from __future__ import annotations

from pathlib import Path

import pytest
from databases import KINDS, new_database
from fault_cluster import running, star, wait_for

from ces_common.states import JOB_OVER

JOBS = 16


def small_job(number: int) -> dict[str, object]:
    """So big that only a few fit at a time."""
    return {
        "name": f"small-{number}",
        "priority": number % 3,
        "tasks": [
            {"name": "t", "replicas": 2, "command": ["sleep", "0.2"], "resources": {"cpu": "700m", "memory": "100Mi"}}
        ],
        "flows": {"topology": "ring", "bandwidth": {"min": "20Mbit", "max": "60Mbit"}},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_two_schedulers_never_overbook(kind: str, tmp_path: Path) -> None:
    url = new_database(kind, tmp_path).render_as_string(hide_password=False)
    with running("two", tmp_path / "cluster", star(4), database_url=url, network="none", schedulers=2) as cluster:
        for number in range(JOBS):
            cluster.submit(small_job(number))
        wait_for(
            lambda: all(job.state in JOB_OVER for job in cluster.client.jobs.list()), "all jobs end", 150, pause_s=0.5
        )
        assert {job.state for job in cluster.client.jobs.list()} == {"succeeded"}
        events = cluster.events()
        proposals = {
            name: cluster.cluster.files.log(name).read_text().count("plan proposed")
            for name in ("scheduler", "scheduler-2")
        }
        assert min(proposals.values()) > 0, proposals
        committed = [event["data"] for event in events if event["type"] == "ces.v1.plan.committed"]
        # An agent that is slow on a busy machine costs its job an attempt; each has one plan all the same.
        attempts = [(job.id, attempt) for job in cluster.client.jobs.list() for attempt in range(1, job.attempt + 1)]
        assert sorted((plan["job"], plan["attempt"]) for plan in committed) == sorted(attempts)
        cluster.check()
