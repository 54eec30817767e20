"""The keys by which nodes encrypt their links, as the manager keeps them, on both databases."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import KINDS, new_database
from manager_world import World

from ces_common.messages.membership import JoinRequest, JoinTokenRequest
from ces_common.messages.records import NodeRecord
from ces_common.messages.reports import LinkKeys, LinkReport, LinkStatus
from ces_manager.errors import Conflict
from ces_manager.measurements import REFUSED, Measurements
from ces_manager.nodes import link_keys, link_reports, membership
from ces_manager.nodes.node_views import node_view
from ces_manager.nodes.rows import node_row

ONE, NEXT, OTHER = (b64encode(bytes([number]) * 32).decode() for number in (1, 2, 3))


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(new_database(request.param, tmp_path))
    made.add_nodes("a", "b")
    yield made
    made.close()


def say(
    world: World,
    node: str,
    *keys: str,
    links: tuple[LinkStatus, ...] = (),
    measurements: Measurements | None = None,
) -> bool:
    """An agent's report, as the service takes it: look first, then act. Whether it was news."""
    told = LinkKeys(keys=list(keys), port=51872) if keys else None
    report = LinkReport(node=node, links=list(links), encryption=told)
    with world.uow.read() as tx:
        if not link_reports.with_news(tx, [report]):
            return False
    world.write(lambda tx: link_reports.take_reports(tx, [report], measurements or Measurements()))
    return True


def record(world: World, name: str) -> NodeRecord:
    return next(node for node in world.snapshot().nodes if node.name == name)


def test_keys_are_told_with_their_node_and_only_changes_are_news(world: World) -> None:
    assert not say(world, "a"), "a node that encrypts nothing says nothing new"
    assert say(world, "a", ONE)
    assert (record(world, "a").link_keys, record(world, "a").link_port) == ([ONE], 51872)
    version = record(world, "a").version
    assert not say(world, "a", ONE)
    assert say(world, "a", ONE, NEXT)
    assert record(world, "a").link_keys == [ONE, NEXT]
    assert record(world, "a").version > version
    assert say(world, "a", NEXT)
    assert say(world, "a")
    assert (record(world, "a").link_keys, record(world, "a").link_port) == ([], 0)
    assert not say(world, "nobody", OTHER)


def test_a_key_that_another_node_has_is_not_taken(world: World) -> None:
    """By it, packets for that node would go astray."""
    assert say(world, "a", ONE, NEXT)
    for claimed in (ONE, NEXT):
        say(world, "b", claimed)
        assert record(world, "b").link_keys == []
    assert say(world, "b", OTHER)
    assert record(world, "b").link_keys == [OTHER]


def test_who_claims_anothers_key_changes_nothing_and_operators_are_told(world: World) -> None:
    """Beside its own, which it keeps; a claim proves nothing, and so the other's links go on."""
    measurements = Measurements()

    def warnings() -> list[str | None]:
        with world.uow.read() as tx:
            return [node_view(tx, node, measurements).warning for node in "ab"]

    assert say(world, "a", ONE, measurements=measurements)
    assert say(world, "b", OTHER, measurements=measurements)
    before = record(world, "a"), record(world, "b")
    events = len(world.events())
    for claimed in ([OTHER, ONE], [ONE], [ONE, OTHER]):
        say(world, "b", *claimed, measurements=measurements)
        assert (record(world, "a"), record(world, "b")) == before
        assert not say(world, "a", ONE, measurements=measurements), "it is no news what it tells"
    assert len(world.events()) == events
    harmless, told = warnings()
    assert harmless is None
    assert told is not None
    assert told.startswith("its key for encrypted links is not taken, since node a told the same before")
    measurements.forget_old(world.clock.now() + REFUSED)
    assert warnings() == [None, None]


def test_the_keys_of_a_device_go_with_it(world: World) -> None:
    """Nobody takes packets any more from the device that another has replaced."""
    assert say(world, "a", ONE)
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node="a")))
    request = JoinRequest(token=token.token, name="a", public_key="U" + "Z" * 55, cpu=1000, memory=2**30, network="tc")
    world.write(lambda tx: membership.join_node(tx, request))
    assert record(world, "a").link_keys == []


def test_a_node_that_joins_without_a_data_plane_has_no_keys(world: World) -> None:
    assert say(world, "a", ONE)
    with world.uow.read() as tx:
        key = node_row(tx, "a").public_key
    token = world.write(lambda tx: membership.create_token(tx, JoinTokenRequest(node="a")))
    request = JoinRequest(token=token.token, name="a", public_key=key, cpu=10**6, memory=2**40, network="none")
    world.write(lambda tx: membership.join_node(tx, request))
    assert record(world, "a").link_keys == []
    assert not say(world, "a", ONE)


def test_only_a_node_with_a_key_is_asked_to_replace_it(world: World) -> None:
    def check() -> None:
        with world.uow.read() as tx:
            link_keys.check_rotatable(tx, "a")

    with pytest.raises(Conflict, match="node a encrypts no links"):
        check()
    say(world, "a", ONE)
    check()
