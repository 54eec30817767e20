"""The shipped training jobs, one for each algorithm, run to their end over the flows that they reserve."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fault_cluster import FaultCluster

from ces_workloads.kinds import KINDS

EXAMPLES = Path(__file__).parents[2] / "examples" / "jobs"


@pytest.mark.parametrize("algorithm", list(KINDS))
def test_a_shipped_job_trains_to_its_end(cluster: FaultCluster, algorithm: str) -> None:
    job = yaml.safe_load((EXAMPLES / f"digits-{algorithm}.yaml").read_text())
    job["tasks"][0]["command"] += ["--hidden", "64", "--rounds", "6"]
    found = cluster.submit(job)
    view = cluster.finish(found)
    assert (view.attempt, view.restarts) == (1, 0)
    assert len({task.node for task in view.placement}) > 1
    for task in view.placement:
        assert task.progress is not None
        assert (task.progress["algorithm"], task.progress["rounds"]) == (algorithm, 6), task.progress
        assert task.progress["bytes_received"] > 0, task.progress
