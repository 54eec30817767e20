"""A region's own quotas hold for its part of a job that is split over two, whoever is at home."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fault_cluster import FaultCluster, recorded_job, star
from region_clusters import Regions, running_regions
from waiting import wait_for

LIFE_S = 2
QUOTA = 0.3  # of the four cores that the far region has
QUEUE = f"tenants: [{{name: default, quota: {{cpu: {QUOTA}}}}}]\n"


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Regions]:
    folder = tmp_path_factory.mktemp("quota")
    queue = folder / "queue.yaml"
    queue.write_text(QUEUE)
    topologies = {"near": star(2), "far": star(2)}
    with running_regions(folder, topologies, borders=True, queues={"far": queue}) as made:
        wait_for(lambda: all(map(joined, made.clusters.values())), "the regions know the link between them")
        yield made
        made.check()


def joined(cluster: FaultCluster) -> bool:
    views = cluster.ask(cluster.client.regions.list)
    return all(each.summary is not None and each.summary.borders for each in views)


def gang(name: str, cpu: str) -> dict[str, Any]:
    """Three tasks of so many cores, of which the near region has room for two."""
    job = recorded_job(name, LIFE_S, replicas=3, regions=["any"])
    job["tasks"][0]["resources"]["cpu"] = cpu
    return job


def test_a_part_beyond_the_quota_of_its_region_is_not_held_and_one_within_it_is(regions: Regions) -> None:
    near, far = regions.clusters["near"], regions.clusters["far"]
    beyond = near.submit(gang("beyond", "1500m"))  # a task is more than 1.2 cores
    wait_for(lambda: list(far.client.jobs.list(name="beyond")), "the far region was asked for a part")

    def released() -> bool:
        parts = list(far.client.jobs.list(name="beyond"))
        return len(parts) >= 2 and all(part.state == "cancelled" for part in parts[1:])

    wait_for(released, "it has held none, though it was asked again")
    assert far.lives() == []
    assert near.client.jobs.get(beyond).state == "queued"
    near.client.jobs.cancel(beyond)
    within = near.submit(gang("within", "1100m"))  # one fits on each node
    view = near.finish(within)
    assert sorted(len(part.tasks) for part in view.parts) == [1, 2]
    [there] = [part.tasks for part in view.parts if part.region == regions.names["far"]]
    assert len(there) == 1
