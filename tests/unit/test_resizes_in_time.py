"""How often malleable jobs are resized, and how soon others profit, in CES as a whole, on time that is told to pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from founded_cluster import founded_cluster
from manager_world import ring
from run_auditor import judge
from whole_world import CONTROLLERS, MANAGERS, SCHEDULERS, WholeWorld

from ces_manager.jobs import submission

NODES = {"a": 2000, "b": 1000, "c": 1000}  # eight places of half a core
LEAST_S = 60.0  # between two resizes of one job
WAKES_S = 2.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[WholeWorld]:
    world = WholeWorld(tmp_path, founded_cluster(**NODES), NODES, {}, shared=True, eager=False)
    for name in (*CONTROLLERS, MANAGERS[0], SCHEDULERS[0], *NODES):
        world.start(name)
    world.flow(0.5)
    yield world
    assert judge(world.journal, NODES) == []
    assert world.errors == []
    world.close()


def submit(world: WholeWorld, name: str, **more: Any) -> str:
    job: str = world.write(lambda tx: submission.submit_job(tx, ring(name, **more), None)).id
    return job


def malleable(world: WholeWorld, name: str) -> str:
    return submit(world, name, elastic={"group": "w", "workers": {"min": 1, "max": 8}})


def size_of(world: WholeWorld, job: str) -> tuple[object, ...]:
    return world.books.ask("SELECT size, state FROM jobs WHERE id = ?", job)[0]


def times(world: WholeWorld, kind: str, job: str) -> list[datetime]:
    """When events of that kind told of the job."""
    bodies = [json.loads(str(body)) for (body,) in world.books.ask("SELECT body FROM events WHERE type = ?", kind)]
    return [datetime.fromisoformat(event["time"]) for event in bodies if event["data"]["job"] == job]


def test_two_that_share_eight_places_for_ten_minutes_are_resized_once_and_rest(world: WholeWorld) -> None:
    first = malleable(world, "first")
    world.flow(5.0)
    second = malleable(world, "second")
    world.flow(600.0)
    assert size_of(world, first) == size_of(world, second) == (4, "running")
    resized = [times(world, "ces.v1.resize.committed", job) for job in (first, second)]
    for each in resized:
        assert all((later - earlier).total_seconds() >= LEAST_S for earlier, later in pairwise(each))
    assert sum(map(len, resized)) <= 3, "from eight to what leaves room, and both to their half"


def test_a_shrink_wakes_who_waits_for_the_room(world: WholeWorld) -> None:
    job = malleable(world, "malleable")
    world.flow(LEAST_S + 10)
    assert size_of(world, job) == (8, "running")
    rigid = submit(world, "rigid", tasks=3)
    world.flow(20)
    (ended,) = times(world, "ces.v1.resize.ended", job)
    (planned,) = times(world, "ces.v1.plan.committed", rigid)
    assert 0 <= (planned - ended).total_seconds() <= WAKES_S
    assert size_of(world, job)[0] == 5
