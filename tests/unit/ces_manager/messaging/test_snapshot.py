"""Readers follow the state by snapshots of changes."""

from __future__ import annotations

import pytest
from manager_world import World, full_mesh, ring
from sqlalchemy import update

from ces_common.db.tables import ClusterRow, JobRow
from ces_common.messages.records import SnapshotQuery
from ces_common.state_view import StateView
from ces_manager.nodes import operations

NODES = ["a", "b", "c"]


def test_readers_follow_by_changes(world: World) -> None:
    view = StateView()
    view.merge(world.snapshot(view.query()))
    assert set(view.nodes) == set(NODES)
    job = world.submit(ring())
    for act in (
        lambda: world.run(job, NODES),
        lambda: world.write(lambda tx: operations.cordon(tx, "a")),
        lambda: world.put_topology(full_mesh(NODES, "200Mbit")),
        lambda: world.cancel(job),
        lambda: world.confirm(job),
    ):
        act()
        change = world.snapshot(view.query())
        assert not change.full
        assert view.merge(change)
        fresh = StateView()
        fresh.merge(world.snapshot())
        assert (view.nodes, view.topology, view.jobs) == (fresh.nodes, fresh.topology, fresh.jobs)
        assert world.snapshot(view.query()).jobs == []
    assert world.snapshot(SnapshotQuery(since=1, epoch="another")).full
    assert world.snapshot(SnapshotQuery(since=10**6, epoch=view.epoch)).full


@pytest.mark.parametrize("kept", [1, 500])
def test_several_readers_hear_the_same_whatever_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr("ces_manager.messaging.snapshot.KEPT", kept)
    world.submit(ring(tasks=1))
    first, late = StateView(), StateView()
    first.merge(world.snapshot())
    late.merge(world.snapshot())
    jobs = [world.submit(ring()), world.submit(ring(tasks=2))]
    for act in (
        lambda: world.run(jobs[0], NODES),
        lambda: world.cancel(jobs[1]),
        lambda: world.tell(jobs[0], "exited", exit_code=1),
    ):
        first.merge(world.snapshot(first.query()))
        act()
        first.merge(world.snapshot(first.query()))
    late.merge(world.snapshot(late.query()))
    fresh = StateView()
    fresh.merge(world.snapshot())
    assert first.jobs == late.jobs == fresh.jobs


def test_what_was_kept_of_another_database_is_not_told(world: World) -> None:
    view = StateView()
    view.merge(world.snapshot())
    job = world.submit(ring())
    view.merge(world.snapshot(view.query()))
    with world.uow.engine.begin() as connection:  # as after a promotion: the same number, and another epoch
        connection.execute(update(ClusterRow).values(epoch="another"))
        connection.execute(update(JobRow).values(restarts=7))
    asked = SnapshotQuery(since=view.version - 1, epoch="another")
    assert [record.restarts for record in world.snapshot(asked).jobs if record.id == job] == [7]
