"""What the manager keeps of how nodes confine their workers, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confinements import APART, TOGETHER
from databases import KINDS, new_database
from manager_world import World, ring

from ces_common.messages.confinement import Confinement, ConfinementReport
from ces_common.messages.membership import JoinRequest, JoinTokenRequest
from ces_common.messages.records import SnapshotQuery
from ces_manager.jobs.job_views import job_view
from ces_manager.measurements import Measurements
from ces_manager.nodes import confinements
from ces_manager.nodes.membership import create_token, join_node
from ces_manager.nodes.node_views import node_view


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


def test_nodes_and_the_tasks_on_them_are_shown_with_it(world: World) -> None:
    say(world, "a", TOGETHER)
    job = world.submit(ring(tasks=1))
    assert world.commit(world.propose(job, ["a"])) is None
    with world.uow.read() as tx:
        (task,) = job_view(tx, job, Measurements()).placement
        assert node_view(tx, "a", Measurements()).confinement == TOGETHER
    assert (task.runtime, task.network, task.confinement) == ("process", "tc", TOGETHER)


def test_another_agent_has_told_nothing_yet(world: World) -> None:
    say(world, "a", APART)
    token = world.write(lambda tx: create_token(tx, JoinTokenRequest(node="a"))).token
    request = JoinRequest(token=token, name="a", public_key=f"U{'A':A<55}", cpu=1, memory=1)
    world.write(lambda tx: join_node(tx, request))
    assert world.snapshot().nodes[0].confinement is None
