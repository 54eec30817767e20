"""What readers are told of nodes and jobs that are no more, on both databases: as much as changed, for as long as it is
remembered that they were there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

import pytest
from databases import KINDS, new_database
from manager_world import World, full_mesh, ring
from sqlalchemy import select, update

from ces_common.db import WriteTx
from ces_common.db.tables import EventRow, RemovalRow
from ces_common.messages.records import Snapshot, SnapshotQuery
from ces_common.state_view import StateView
from ces_manager import retention

NODES = ["a", "b", "c", "d"]


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = World(new_database(request.param, tmp_path))
    world.add_nodes(*NODES)
    world.put_topology(full_mesh(NODES))
    with world.uow.bare_write() as session:
        session.execute(update(EventRow).values(published=True))
    yield world
    world.close()


def forget(world: World, name: str) -> None:
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat(*(node.name for node in world.snapshot().nodes if node.name != name))
    world.expire()
    world.forget(name)


def follow(world: World, view: StateView) -> Snapshot:
    """The view after what it is told now is what a new one would be."""
    told = world.snapshot(view.query())
    view.merge(told)
    fresh = StateView()
    fresh.merge(world.snapshot())
    assert (view.nodes, view.topology, view.jobs, view.version) == (
        fresh.nodes,
        fresh.topology,
        fresh.jobs,
        fresh.version,
    )
    return told


def test_readers_are_told_which_node_is_gone_and_nothing_else(world: World) -> None:
    for _ in range(3):
        world.submit(ring(tasks=1))
    follower, late = StateView(), StateView()
    follow(world, follower)
    follow(world, late)
    forget(world, "b")
    world.add_nodes("e")
    told = follow(world, follower)
    assert (told.full, told.removed_nodes, told.jobs) == (False, ["b"], [])
    assert follow(world, follower).removed_nodes == [], "once"
    forget(world, "e")
    told = follow(world, late)
    assert (told.full, sorted(told.removed_nodes)) == (False, ["b", "e"])
    assert sorted(late.nodes) == ["a", "c", "d"]


def test_a_node_that_comes_back_is_there(world: World) -> None:
    view, late = StateView(), StateView()
    follow(world, view)
    follow(world, late)
    for _ in range(2):
        forget(world, "b")
        follow(world, view)
        world.add_nodes("b")
        assert not follow(world, view).full
        assert "b" in view.nodes
    assert not follow(world, late).full
    assert "b" in late.nodes


def test_jobs_of_long_ago_are_told_to_those_who_did_not_hear_of_their_end(world: World) -> None:
    jobs = [world.submit(ring(tasks=1)) for _ in range(3)]
    view = StateView()
    follow(world, view)
    world.cancel(jobs[0])
    world.cancel(jobs[1])
    world.wait(world.timeouts.keep_jobs_s + 1)
    world.prune()
    told = follow(world, view)
    assert (told.full, set(told.removed_jobs), set(view.jobs)) == (False, set(jobs[:2]), {jobs[2]})


def test_who_comes_later_than_removals_are_kept_is_told_everything(world: World) -> None:
    world.submit(ring(tasks=1))
    late, follower = StateView(), StateView()
    follow(world, late)
    forget(world, "b")
    follow(world, follower)
    assert world.prune() == 0
    world.wait(world.timeouts.keep_removals_s + 1)
    assert world.prune() == 1
    with world.uow.read() as tx:
        assert tx.session.scalars(select(RemovalRow.name)).all() == []
    world.submit(ring(tasks=1))
    assert not follow(world, follower).full, "it has heard of it"
    assert follow(world, late).full


def test_two_managers_drop_the_same_removals(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have seen that there is something to drop, and one is first."""
    forget(world, "b")
    world.wait(world.timeouts.keep_removals_s + 1)
    cut = retention.cutoffs(world.clock.dated(), world.timeouts)
    write, dropped = world.uow.write, []

    def later(now: datetime) -> AbstractContextManager[WriteTx]:
        monkeypatch.undo()
        dropped.append(retention.prune(world.uow, cut, world.timeouts, now))
        return write(now)

    monkeypatch.setattr(world.uow, "write", later)
    dropped.append(retention.prune(world.uow, cut, world.timeouts, world.now))
    assert dropped == [1, 0]


def test_what_is_removed_again_is_remembered_for_as_long_again(world: World) -> None:
    view = StateView()
    follow(world, view)
    forget(world, "b")
    world.wait(world.timeouts.keep_removals_s - 200)
    world.add_nodes("b")
    follow(world, view)
    forget(world, "b")
    world.wait(300)
    assert world.prune() == 0
    assert follow(world, view).removed_nodes == ["b"]


def test_who_does_not_understand_removals_is_told_everything_after_one(world: World) -> None:
    """A service of a former release beside a manager of this one."""
    before = world.snapshot()
    forget(world, "b")
    asked = SnapshotQuery.model_validate({"since": before.version, "epoch": before.epoch})
    assert world.snapshot(asked).full
    assert not world.snapshot(asked.model_copy(update={"since": world.snapshot().version})).full
