"""Regions and their jobs as they are drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from ces_experiments.regions.drawn import Shape, draw, neighbours, shares
from ces_federation.choice import need_of

SHAPE = Shape(regions=4, nodes=5, jobs=10, load=0.8, homes="even", regime="tight", tasks=(1, 2, 3), duration_s=60.0)


@pytest.mark.parametrize(("count", "pairs"), [(1, 0), (2, 1), (3, 3), (4, 6), (8, 12), (64, 96)])
def test_neighbours_are_told_once_and_form_a_circle_with_ways_across(count: int, pairs: int) -> None:
    names = [str(number) for number in range(count)]
    found = neighbours(names)
    assert len({frozenset(pair) for pair in found}) == len(found) == pairs
    for number in range(count if count > 2 else 0):
        assert {names[number], names[(number + 1) % count]} in [set(pair) for pair in found]


@pytest.mark.parametrize("regions", [2, 4, 5, 64])
def test_a_quarter_of_the_regions_submits_half_of_the_jobs(regions: int) -> None:
    found = shares(regions, "uneven")
    assert sum(found) == pytest.approx(1)
    assert sum(found[: max(1, round(regions / 4))]) == pytest.approx(0.5)
    assert shares(regions, "even") == [1 / regions] * regions
    assert shares(1, "uneven") == [1.0]


def test_the_one_cluster_has_every_node_and_link_and_those_between_regions() -> None:
    world = draw(SHAPE, 7)
    assert len(world.regions) == 4
    own = [cluster.topology.nodes for cluster in world.regions.values()]
    assert sum(own, ()) == world.whole.topology.nodes == world.parts.topology.nodes
    links = sum(len(cluster.link_capacity) for cluster in world.regions.values())
    assert len(world.parts.link_capacity) == links
    assert len(world.whole.link_capacity) == links + 2 * len(neighbours(list(world.regions)))
    for cluster in world.regions.values():
        assert cluster.node_capacity.sum() < world.whole.node_capacity.sum()
    total = sum(cluster.node_free[:2].sum() for cluster in world.regions.values())
    assert total == pytest.approx(world.whole.node_free[:2].sum())


def test_the_same_seed_draws_the_same() -> None:
    one, again, other = draw(SHAPE, 7), draw(SHAPE, 7), draw(SHAPE, 8)
    assert one.jobs == again.jobs
    assert one.jobs != other.jobs
    assert (one.whole.node_capacity == again.whole.node_capacity).all()
    assert (one.whole.link_capacity == again.whole.link_capacity).all()


def test_who_has_many_jobs_changes_nothing_else() -> None:
    even, uneven = draw(replace(SHAPE, jobs=50), 7), draw(replace(SHAPE, jobs=50, homes="uneven"), 7)
    assert [job.timed for job in even.jobs] == [job.timed for job in uneven.jobs]
    assert Counter(job.home for job in uneven.jobs)["r1"] > 1.5 * Counter(job.home for job in even.jobs)["r1"]


def test_a_job_file_asks_for_what_its_job_does() -> None:
    for job in draw(SHAPE, 7).jobs:
        need = need_of(job.file)
        assert need.whole.cpu == pytest.approx(1000 * sum(task.cpu for task in job.timed.tasks), abs=8)
        assert need.largest.memory == pytest.approx(2**20 * max(task.memory for task in job.timed.tasks), rel=1e-3)
        assert len(job.file.expand_flows()) == len(job.timed.flows)
        assert list(need.regions) == ["any"]
