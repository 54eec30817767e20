"""What the manager keeps of how nodes confine their workers, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confinements import APART, TOGETHER
from databases import KINDS, new_database
from manager_world import World

from ces_common.messages.confinement import Confinement, ConfinementReport
from ces_common.messages.queries import SnapshotQuery
from ces_manager.nodes import confinements


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(new_database(request.param, tmp_path))
    made.add_nodes("a", "b", confinement=None)
    yield made
    made.close()


def say(world: World, node: str, confinement: Confinement) -> bool:
    """An agent's report, as the service takes it: look first, then act. Whether it was news."""
    report = ConfinementReport(node=node, confinement=confinement)
    with world.uow.read() as tx:
        if not confinements.with_news(tx, [report]):
            return False
    world.write(lambda tx: confinements.take_reports(tx, [report]))
    return True


def test_what_a_node_tells_is_news_once_and_known_to_all(world: World) -> None:
    before = world.snapshot()
    assert [node.confinement for node in before.nodes] == [None, None]
    assert say(world, "a", APART)
    assert not say(world, "a", APART)
    (changed,) = world.snapshot(SnapshotQuery(since=before.version, epoch=before.epoch)).nodes
    assert (changed.name, changed.confinement) == ("a", APART)
    assert world.events()[-1][1] == "node.changed"
    assert say(world, "a", TOGETHER)
    assert not say(world, "nobody", APART)
