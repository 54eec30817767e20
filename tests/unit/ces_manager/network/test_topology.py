"""A new topology: which jobs it cannot carry, and which files are refused."""

from __future__ import annotations

import pytest
from manager_world import World, full_mesh, ring

from ces_common.messages.api import TopologyFile
from ces_common.states import AllocationState, JobState
from ces_manager.errors import Invalid

NODES = ["a", "b", "c", "d"]


J, A = JobState, AllocationState


def test_a_smaller_topology_gives_up_the_less_important_jobs_only(world: World) -> None:
    first, urgent = world.submit(ring(tasks=2, priority=10)), world.submit(ring(tasks=2, priority=90))
    elsewhere = world.submit(ring(tasks=2))
    world.run(first, ["a", "b"])
    world.run(urgent, ["a", "b"])
    world.run(elsewhere, ["c", "d"])
    world.put_topology(full_mesh(["a", "b", "c", "d"], "15Mbit"))
    assert [world.job(job).state for job in (first, urgent, elsewhere)] == [J.RESCHEDULING, J.RUNNING, J.RUNNING]
    world.confirm(first)
    world.put_topology(full_mesh(["a", "b", "c"], "100Mbit"))
    assert world.job(elsewhere).state is J.RESCHEDULING
    assert world.job(elsewhere).reason == "link c › d is gone"
    world.confirm(elsewhere)


@pytest.mark.parametrize(
    ("file", "field"),
    [
        ({"links": [{"src": "a", "dst": "a", "bandwidth": 1}]}, "links[0]"),
        ({"links": [{"src": "a", "dst": "b", "bandwidth": 0}]}, "links[0].bandwidth"),
        ({"links": [{"src": x, "dst": y, "bandwidth": 1} for x, y in ("ab", "ba")]}, "links[1]"),
        ({"links": [{"src": "a", "dst": "b", "bandwidth": 1, "medium": "air"}]}, "links[0].medium"),
        ({"media": [{"name": "air", "bandwidth": 1}] * 2}, "media[1].name"),
    ],
)
def test_a_wrong_topology_is_refused_whole(world: World, file: dict[str, object], field: str) -> None:
    before = world.snapshot()
    with pytest.raises(Invalid) as refused:
        world.put_topology(TopologyFile.model_validate(file))
    assert refused.value.field == field
    assert world.snapshot() == before
