"""What is measured of malleable jobs, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from history_actors import malleable
from manager_world import World
from meshed_world import meshed_world
from speed_readings import kept, note, reading
from sqlalchemy.engine import URL

from ces_common.messages.records import SnapshotQuery


@pytest.fixture
def world(url: URL) -> Iterator[World]:
    with meshed_world(url, "a", "b", "c") as made:
        yield made


def test_it_is_kept_and_told_as_a_change_with_no_event(world: World) -> None:
    """A reading of nobody writes nothing."""
    job = world.submit(malleable(low=2))
    world.run(job, ["a", "b"])
    world.wait(60)
    known, events = world.snapshot(), world.events()
    note(world, replace(reading(world, job), allocation="nothing"))
    assert world.snapshot().version == known.version
    note(world, reading(world, job, rate=1 / 3))
    assert kept(world, job) == (100, {2: 1 / 3})
    changed = world.snapshot(SnapshotQuery(since=known.version, epoch=known.epoch, removals=True))
    assert [record.speeds for record in changed.jobs] == [world.job(job).speeds]
    assert world.events() == events
