"""What was learned, in the database."""

from __future__ import annotations

from manager_world import World, full_mesh

from ces_common.messages.reports import LinkReport, LinkStatus
from ces_manager.availability import notes, views
from ces_manager.availability.watch import Watch
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.network.link_states import take_reports
from ces_manager.network.link_views import link_view
from ces_manager.nodes import operations
from ces_manager.nodes.node_views import node_view


async def learns(world: World, watch: Watch, minutes: int, *silent: str) -> None:
    """Time passes, in which all nodes but these are heard; what is learned is written down."""
    for _ in range(6 * minutes):
        world.wait(10)
        world.beat(*({"a", "b", "c"} - set(silent)))
        world.look()
        with world.uow.read() as tx:
            notes.look(tx, watch, world.failure_detector.hearing, world.failure_detector.nodes.age)
    database = Database(world.uow, world.clock)
    await notes.write_down(database, watch)
    database.close()


def new_watch(world: World) -> Watch:
    return Watch(world.timeouts.unreachable_after_s, world.timeouts.lease_s)


async def test_nodes_and_links_are_there_or_not(world: World) -> None:
    watch = new_watch(world)
    down = LinkReport(node="a", links=[LinkStatus(peer="b", state="down", reason="no carrier")])
    world.write(lambda tx: take_reports(tx, [down]))
    await learns(world, watch, 20)
    await learns(world, watch, 10, "c")
    with world.uow.read() as tx:
        known = {name: node_view(tx, name, Measurements()).availability for name in ("a", "c")}
        links = {dst: link_view(tx, Measurements(), "a", dst).availability for dst in ("b", "c")}
    assert known["a"] is not None
    assert known["c"] is not None
    assert known["a"].n in (29, 30)
    assert 0.89 < known["a"].least < 1
    assert 0.6 < known["c"].mean < 0.7
    assert links["b"] is not None
    assert links["c"] is not None
    assert links["b"].mean < 0.05
    assert links["c"].n < 21, "while c was away, nothing was said of the link to it"
    assert links["c"].mean > 0.95


async def test_a_cordoned_node_is_left_out(world: World) -> None:
    world.write(lambda tx: operations.cordon(tx, "a"))
    await learns(world, new_watch(world), 5, "a")
    with world.uow.read() as tx:
        assert views.availability_of_nodes(tx).keys() == {"b", "c"}
        assert ("b", "a") not in views.availability_of_links(tx, ["b"])


async def test_a_link_that_has_left_the_topology_is_forgotten_and_one_that_stays_is_not(world: World) -> None:
    watch = new_watch(world)
    await learns(world, watch, 5)
    world.put_topology(full_mesh(["a", "b"]))
    await learns(world, watch, 5)
    with world.uow.read() as tx:
        links = views.availability_of_links(tx, ["a"])
    assert links.keys() == {("a", "b")}
    assert links["a", "b"].n >= 9
