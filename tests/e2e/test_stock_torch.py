"""A stock torch.distributed program, which knows nothing of CES, trains on a CES cluster unchanged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fault_cluster import FaultCluster

PROGRAM = Path(__file__).parents[2] / "examples" / "torch_ddp.py"


@pytest.mark.needs("torch")
def test_a_stock_torch_program_trains_unchanged(cluster: FaultCluster) -> None:
    job = cluster.submit(
        {
            "name": "stock-torch",
            "tasks": [
                {
                    "name": "w",
                    "replicas": 3,
                    "image": "ces-worker-test",
                    "command": ["python", str(PROGRAM), "--epochs", "3"],
                    "resources": {"cpu": "700m", "memory": "900Mi"},
                }
            ],
            # gloo's ring sends from rank i to i - 1
            "flows": {
                "topology": "ring",
                "direction": "reverse",
                "bandwidth": {"min": "5Mbit", "max": "40Mbit"},
            },
        }
    )
    view = cluster.finish(job, timeout_s=240)
    assert view.restarts == 0
    lines = cluster.client.jobs.logs(job, "w-0")
    results = [json.loads(line) for line in lines if line.startswith("{")]
    assert results[-1]["accuracy"] > 0.8
