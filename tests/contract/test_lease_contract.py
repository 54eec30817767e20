"""Leases on both databases: who renews one while its node is being given up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from manager_world import World, ring
from sqlalchemy.engine import URL

from ces_common.db.tables import NodeRow
from ces_manager.nodes.expiry import what_is_due
from ces_manager.nodes.heartbeats import Asker, Joined, renew_leases, unheard


def test_a_lease_that_is_asked_for_while_its_node_is_given_up_says_what_followed(url: URL) -> None:
    world = World(url)
    world.add_nodes("a", "b")
    world.run(world.submit(ring(tasks=1, disconnect="stop")), ["a"])
    world.wait(world.timeouts.lease_s + world.timeouts.margin_s + 1)
    world.beat("b")
    asked, answered = Event(), Event()

    def ask() -> dict[str, Joined]:
        asked.set()
        granted = renew_leases(world.uow, [Asker("a", "again")], world.now)
        answered.set()
        return granted

    with ThreadPoolExecutor(1) as beside:
        with world.uow.write(world.now) as tx:
            due = what_is_due(tx, world.timeouts, world.failure_detector)
            assert unheard(tx, due.lost, world.failure_detector) == ["a"]
            asking = beside.submit(ask)
            asked.wait()
            assert not answered.wait(0.3), "it waits for what is decided of its node"
            tx.session.get_one(NodeRow, "a").least_generation = decided = tx.version
        assert asking.result()["a"].least_generation == decided
    world.close()
