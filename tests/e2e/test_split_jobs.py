"""A gang that no region has room for runs over two, and what flows over the border between them is what was promised,
whatever else is sent there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fault_cluster import FaultCluster, program, star
from measured_traffic import arrived, rate
from region_clusters import Regions, running_regions
from waiting import wait_for

from ces_common.quantities import parse_bandwidth

pytestmark = [pytest.mark.alone, pytest.mark.needs("root")]
SEND_S, WARM_S = 20.0, 3.0
TOLERANCE = 0.01
RATES = {  # over the border, both ways at once
    ("w-0-0", "w-1-0"): "20Mbit",
    ("w-1-0", "w-0-0"): "12Mbit",
}


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    topologies = {"near": star(2), "far": star(2)}
    with running_regions(tmp_path_factory.mktemp("split"), topologies, "tc", borders=True) as made:
        wait_for(lambda: all(map(joined, made.clusters.values())), "the regions know the link between them")
        yield made


def joined(cluster: FaultCluster) -> bool:
    views = cluster.ask(cluster.client.regions.list)
    return all(each.summary is not None and each.summary.borders for each in views)


def gang(name: str, command: dict[str, Any], rates: dict[tuple[str, str], str] = RATES) -> dict[str, Any]:
    """Three tasks, each of which needs a node of its own: a region has two."""
    edges = [{"src": src, "dst": dst, "bandwidth": {"min": each, "max": each}} for (src, dst), each in rates.items()]
    tasks = [
        {"name": f"w-{i}", "image": "ces-worker-test", "resources": {"cpu": "1500m", "memory": "128Mi"}, **command}
        for i in range(3)
    ]
    return {"name": name, "tasks": tasks, "flows": {"topology": "edges", "edges": edges}, "regions": ["any"]}


def test_a_gang_that_fits_no_region_runs_over_two(regions: Regions) -> None:
    near, far = regions.clusters["near"], regions.clusters["far"]
    job = near.submit(gang("over-two", program("traffic", SEND_S, "flows")))
    view = near.await_state(job, "elsewhere")
    assert sorted(part.region for part in view.parts) == sorted(regions.names.values())
    assert sorted(task for part in view.parts for task in part.tasks) == ["w-0-0", "w-1-0", "w-2-0"]
    near.finish(job)
