"""What the manager keeps of links beside their configuration, on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import KINDS, new_database
from manager_world import World, full_mesh, ring

from ces_common.db.tables import EventRow
from ces_common.messages.api import TopologyFile
from ces_common.messages.events import LinkChanged, parse_event
from ces_common.messages.membership import JoinRequest, JoinTokenRequest
from ces_common.messages.records import LinkRecord, SnapshotQuery
from ces_common.messages.reports import LinkReport, LinkStatus
from ces_common.shares import reservable
from ces_manager.errors import NotFound
from ces_manager.measurements import Measurements
from ces_manager.network import link_states, link_views
from ces_manager.nodes import membership

MBIT = 1_000_000
WIRE = TopologyFile.model_validate({"links": [{"src": "a", "dst": "b", "bandwidth": "100Mbit"}]})


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(new_database(request.param, tmp_path))
    made.add_nodes("a", "b")
    made.put_topology(WIRE)
    yield made
    made.close()


def say(world: World, src: str, dst: str, state: str, reason: str | None = None) -> bool:
    """An agent's report, as the service takes it: look first, then act. Whether it was news."""
    report = LinkReport(node=src, links=[LinkStatus.model_validate({"peer": dst, "state": state, "reason": reason})])
    with world.uow.read() as tx:
        if not link_states.with_news(tx, [report]):
            return False
    world.write(lambda tx: link_states.take_reports(tx, [report]))
    return True


def link(world: World, src: str = "a", dst: str = "b") -> LinkRecord:
    topology = world.snapshot().topology
    assert topology is not None
    return next(link for link in topology.links if (link.src, link.dst) == (src, dst))


def test_a_link_that_its_source_sees_down_takes_no_plan_until_it_is_up(world: World) -> None:
    before = world.snapshot()
    assert not say(world, "a", "b", "up"), "links are up until their source says otherwise"
    assert say(world, "a", "b", "down", "no carrier\0")
    change = world.snapshot(SnapshotQuery(since=before.version, epoch=before.epoch)).topology
    assert change is not None
    assert {(each.src, each.state) for each in change.links} == {("a", "down"), ("b", "up")}, "one direction only"
    with world.uow.read() as tx:
        told = parse_event(tx.session.query(EventRow).order_by(EventRow.sequence.desc()).first().body.encode())
        view = link_views.list_links(tx, Measurements(), cursor=None, limit=1).items[0]
    expected = LinkChanged(
        src="a", dst="b", state="down", reason="no carrier\N{REPLACEMENT CHARACTER}", bandwidth=100 * MBIT
    )
    assert told.data == expected
    assert (view.state, view.reason, view.state_since) == ("down", expected.reason, world.now)
    job = world.submit(ring(tasks=2))
    assert "which is down" in (world.commit(world.propose(job, ["a", "b"])) or "")
    assert not say(world, "a", "b", "down", "in other words")
    assert not say(world, "a", "nobody", "down")
    assert say(world, "a", "b", "up")
    assert link(world).up
    assert world.commit(world.propose(job, ["a", "b"])) is None


@pytest.mark.parametrize("network", ["none", "tc"])
def test_a_node_that_joins_again_without_a_data_plane_takes_its_word_back(world: World, network: str) -> None:
    for src, dst in (("a", "b"), ("b", "a")):
        assert say(world, src, dst, "down", "no carrier")
        world.write(lambda tx, src=src, dst=dst: link_states.take_measurement(tx, src, dst, 40 * MBIT, 0.002))
    before = world.snapshot()
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node="a"))).token
    again = JoinRequest.model_validate(
        {"name": "a", "token": token, "public_key": f"U{'A' * 55}", "cpu": 2000, "memory": 2**30, "network": network}
    )
    world.write(lambda tx: membership.join_node(tx, again))
    known = [(each.up, each.capacity) for each in (link(world), link(world, "b", "a"))]
    if network == "tc":
        assert known == [(False, 40 * MBIT)] * 2, "its agent will say how they are"
        return
    assert known == [(True, 100 * MBIT), (False, 40 * MBIT)], "its own alone"
    change = world.snapshot(SnapshotQuery(since=before.version, epoch=before.epoch)).topology
    assert change is not None, "who follows the network hears of it"
    assert not say(world, "a", "b", "down", "said before, heard after")
    assert link(world).up


def test_a_capacity_that_was_measured_counts_where_it_is_lower(world: World) -> None:
    job = world.submit(ring(tasks=2, high="100Mbit"))
    world.write(lambda tx: link_states.take_measurement(tx, "a", "b", 40 * MBIT, 0.002))
    assert (link(world).bandwidth, link(world).capacity) == (100 * MBIT, 40 * MBIT)
    refused = world.commit(world.propose(job, ["a", "b"], bandwidth=reservable(40 * MBIT) + 1))
    assert "link a › b has 38 Mbit/s left" in (refused or "")
    assert world.commit(world.propose(job, ["a", "b"], bandwidth=reservable(40 * MBIT))) is None
    world.write(lambda tx: link_states.take_measurement(tx, "a", "b", 400 * MBIT, None))
    assert link(world).capacity == 100 * MBIT
    with pytest.raises(NotFound, match="no link a › z"):
        world.write(lambda tx: link_states.take_measurement(tx, "a", "z", MBIT, None))


def test_a_new_topology_keeps_what_is_known_of_the_links_that_stay(world: World) -> None:
    for dst, src in (("a", "b"), ("b", "a")):
        world.write(lambda tx, src=src, dst=dst: link_states.take_measurement(tx, src, dst, 40 * MBIT, 0.002))
    say(world, "a", "b", "down", "why")
    world.add_nodes("c")
    world.put_topology(full_mesh(["a", "b", "c"]))
    assert [link(world).state, link(world).measured, link(world, "a", "c").state] == ["down", 40 * MBIT, "up"]
    world.put_topology(full_mesh(["a", "b", "c"], "200Mbit"))
    assert (link(world).state, link(world).measured) == ("down", None), "of what it was, nothing is known of what it is"
