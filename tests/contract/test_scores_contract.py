"""What the manager keeps of how fast nodes are, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import KINDS, new_database
from manager_world import World

from ces_common.db.tables import NodeRow
from ces_common.db.uow import WriteTx
from ces_common.messages.membership import JoinRequest, JoinTokenRequest
from ces_common.messages.scores import Measurement, NodeScores, ScoreReport
from ces_common.scores import REFERENCE
from ces_manager.errors import Conflict, NotFound
from ces_manager.measurements import Measurements
from ces_manager.nodes import scores
from ces_manager.nodes.membership import create_token, join_node
from ces_manager.nodes.node_views import node_view
from ces_manager.nodes.scores import CHANGES_AT_ONCE, CHANGES_PER_S, Changes, check_measurable


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = World(new_database(request.param, tmp_path))
    made.add_nodes("a", "b")
    yield made
    made.close()


class Intake:
    """Takes reports as the service does: look first, then act. ``now``: of its clock."""

    def __init__(self, world: World) -> None:
        self.world, self.now = world, 0.0
        self._changes = Changes(lambda: self.now)

    def says(self, node: str, times: float) -> bool:
        """So many times as fast as the reference core. Whether it was taken in."""
        rate = times * REFERENCE["integer"]
        report = ScoreReport(node=node, measurements=[Measurement(kind="integer", rates=[rate] * 5, source="pow")])
        with self.world.uow.read() as tx:
            if not self._changes.with_news(tx, [report]):
                return False
        self.world.write(lambda tx: scores.take_reports(tx, [report]))
        return True


def shown(world: World, node: str) -> NodeScores | None:
    with world.uow.read() as tx:
        return node_view(tx, node, Measurements()).scores


def test_what_a_node_tells_is_news_once_and_shown(world: World) -> None:
    intake, before = Intake(world), len(world.events())
    assert shown(world, "a") is None
    assert intake.says("a", 4.0)
    assert not intake.says("a", 4.0)
    found = shown(world, "a")
    assert found is not None
    assert found.level == 7.0
    assert [(each.kind, round(each.score, 6)) for each in found.raw] == [("integer", 4.0)]
    assert not intake.says("nobody", 1.0)
    assert len(world.events()) == before, "nothing is decided by it"


def test_a_node_that_always_tells_something_else_is_heard_seldom(world: World) -> None:
    intake = Intake(world)
    assert sum(intake.says("a", 1.0 + number) for number in range(50)) == CHANGES_AT_ONCE
    assert intake.says("b", 1.0), "which concerns no other"
    intake.now = 1 / CHANGES_PER_S
    assert [intake.says("a", 100.0), intake.says("a", 101.0)] == [True, False]


def test_another_agent_has_told_nothing_yet(world: World) -> None:
    Intake(world).says("a", 1.0)
    token = world.write(lambda tx: create_token(tx, JoinTokenRequest(node="a"))).token
    request = JoinRequest(token=token, name="a", public_key=f"U{'A':A<55}", cpu=1, memory=1)
    world.write(lambda tx: join_node(tx, request))
    assert shown(world, "a") is None


def test_a_node_is_asked_only_where_it_is_and_answers(world: World) -> None:
    with world.uow.read() as tx:
        check_measurable(tx, "a")
        with pytest.raises(NotFound):
            check_measurable(tx, "nobody")

    def silence(tx: WriteTx) -> None:
        tx.session.get_one(NodeRow, "a").state = "unreachable"

    world.write(silence)
    with world.uow.read() as tx, pytest.raises(Conflict, match="unreachable"):
        check_measurable(tx, "a")
