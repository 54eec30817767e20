"""A graph that was divided becomes a job that runs, no part of it above its capacity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ces_command import ces
from fault_cluster import FaultCluster

from ces_common.quantities import parse_bandwidth

CPU = 700  # millicores that one part may ask for


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    """Six vertices in a ring, of 300 millicores each: two of them fit into a part."""
    names = [f"v{i}" for i in range(6)]
    rates = ("8Mbit", "1Mbit") * 3
    edges = [
        {"src": names[i], "dst": names[(i + 1) % 6], "bandwidth": {"min": rate, "max": rate}}
        for i, rate in enumerate(rates)
    ]
    told = {
        "name": "ring",
        "capacity": {"cpu": f"{CPU}m", "memory": "256Mi"},
        "vertices": [{"name": name, "cpu": "300m", "memory": "64Mi"} for name in names],
        "edges": edges,
        "run": {"command": ["python", "-c", "import os; print('vertices', os.environ['CES_VERTICES'])"]},
    }
    path = tmp_path / "ring.json"
    path.write_text(json.dumps({"graph": told}))
    return path


def test_a_divided_graph_is_submitted_runs_and_succeeds(cluster: FaultCluster, graph: Path, tmp_path: Path) -> None:
    at = {"CES_URL": cluster.cluster.url, "CES_TOKEN": cluster.cluster.token, "CES_CONTEXT": str(tmp_path / "none")}
    told = json.loads(ces("decompose", graph, "--parts", 3, "--apply", "-o", "json", env=at).stdout)
    assert told["feasible"]
    view = cluster.finish(told["submitted"])
    assert [task.cpu for task in view.placement] == [600] * 3
    assert all(task.cpu <= CPU and task.memory <= 256 * 2**20 for task in view.placement)
    most = [parse_bandwidth(flow["bandwidth"]["max"]) for flow in told["job"]["flows"]["edges"]]
    assert sum(most) == 3 * parse_bandwidth("1Mbit")
    said = {line.strip().partition("vertices ")[2] for line in cluster.client.jobs.logs(told["submitted"])}
    assert said == {f"v{i},v{i + 1}" for i in (0, 2, 4)}
