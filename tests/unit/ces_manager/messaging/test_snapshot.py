"""Readers follow the state by snapshots of changes."""

from __future__ import annotations

from manager_world import World, full_mesh, ring

from ces_common.messages.queries import SnapshotQuery
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
