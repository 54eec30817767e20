"""Plans of applications are judged again before they are committed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from applications import inspection, inspection_file, request
from manager_world import World
from moved_tasks import ask

from ces_common.db.tables import JobRow
from ces_common.messages.api import TopologyFile
from ces_common.messages.plans import PlanProposed
from ces_common.messages.profiles import NodeProfile, Position
from ces_common.messages.records import SnapshotQuery
from ces_common.messages.scores import Measurement, ScoreReport
from ces_manager.errors import Conflict, Invalid
from ces_manager.nodes import scores
from ces_manager.nodes.rows import node_row
from ces_manager.plans.application_fit import application_misfit
from ces_manager.plans.feasibility import Misfit, Obstacle
from ces_manager.plans.residual import residual_of

MATRIX = 1.2e11  # of one thread of the reference core


@pytest.fixture
def world(world: World) -> World:
    """A roof and a gate, 3 ms apart; the gate is as fast as the reference core."""
    world.add_nodes("roof1", "gate1", cpu=4000, memory=2**32)
    links = [{"src": "roof1", "dst": "gate1", "bandwidth": "100Mbit", "delay": "3ms"}]
    world.put_topology(TopologyFile.model_validate({"links": links}))
    measured = Measurement(kind="matrix", rates=[MATRIX, MATRIX], source="test")
    world.write(lambda tx: scores.take_reports(tx, [ScoreReport(node="gate1", measurements=[measured])]))
    return world


def proposed(world: World, detect: str = "gate1", client: str = "roof1", **fields: Any) -> PlanProposed:
    job = world.submit(inspection_file(**fields))
    return world.propose(job, [client, detect], bandwidth=8_000_000)


def test_a_plan_that_keeps_its_deadline_is_committed(world: World) -> None:
    """2 ms of access, 2 x 3 ms of delays, 10 + 1 ms for messages, 25 ms of work among others: 44 ms."""
    assert world.commit(proposed(world, requests=[request(deadline="44ms")])) is None


def test_one_that_misses_it_is_not(world: World) -> None:
    reason = world.commit(proposed(world, requests=[request(deadline="43.9ms")]))
    assert reason == "request loop would take 44 ms of 43.9 ms"
    assert isinstance(reason, Misfit)
    assert reason.obstacle is Obstacle.DEADLINE


def test_a_flow_that_has_nothing_ends_no_request(world: World) -> None:
    """As rerouting leaves one whose path is broken."""
    plan = proposed(world)
    given = [flow.model_copy(update={"rate": 0}) for flow in plan.flows]
    hops = {hop for flow in given for hop in pairwise(flow.path)}
    with world.uow.read() as tx:
        row = tx.session.get_one(JobRow, plan.job)
        residual = residual_of(tx, {"roof1", "gate1"}, hops)
        said = application_misfit(tx, row, row.tasks, row.flows, plan.assignments, given, residual)
    assert said == "request loop would never come through: a flow of it has no bandwidth"


def test_a_deadline_that_is_not_hard_is_nobodys_concern_here(world: World) -> None:
    assert world.commit(proposed(world, requests=[request(deadline="1ms", hard=False)])) is None


def test_delays_are_those_of_the_topology_now(world: World) -> None:
    plan = proposed(world, requests=[request(deadline="44ms")])
    links = [{"src": "roof1", "dst": "gate1", "bandwidth": "100Mbit", "delay": "4ms"}]
    world.put_topology(TopologyFile.model_validate({"links": links}))
    assert world.commit(plan) == "request loop would take 46 ms of 44 ms"


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (("gate1", "gate1"), "client-0 belongs at user cam, that is on node roof1, the plan puts it on gate1"),
        (("roof1", "roof1"), "node roof1 was not measured for matrix, the work of detect-0"),
    ],
)
def test_a_plan_that_puts_a_task_where_it_must_not_be(world: World, places: tuple[str, str], said: str) -> None:
    client, detect = places
    assert world.commit(proposed(world, detect, client)) == said


def test_a_task_that_would_be_too_loaded_or_too_slow(world: World) -> None:
    busy = world.commit(proposed(world, requests=[request(rate=41, deadline="10s")]))
    assert busy == "detect-0 would be loaded to 0.82 on node gate1, 0.8 at most"
    work = {"work": {"per_request": "20ru", "class": "matrix", "threads": 1, "longest": "24ms"}}
    client, detect = inspection()["tasks"]
    slow = world.commit(proposed(world, tasks=[client, detect | work]))
    assert slow == "detect-0 would take 25 ms on node gate1, 24 ms are its limit"


def test_within_a_node_nothing_is_sent(world: World) -> None:
    at_the_gate = [{"name": "cam", "at": {"node": "gate1"}}]
    plan = proposed(world, client="gate1", users=at_the_gate, requests=[request(deadline="25ms")])
    assert world.commit(plan) is None


def test_a_user_whom_no_node_covers_is_refused_at_once(world: World) -> None:
    with pytest.raises(Invalid) as error:
        world.submit(inspection_file(users=[{"name": "cam", "at": {"lat": 51, "lon": 13}}]))
    assert error.value.field == "users[0].at"
    assert "no node says where it is" in error.value.remedy


def test_a_user_at_a_position_is_at_the_node_that_covers_it(world: World) -> None:
    def placed(tx: Any) -> None:
        node_row(tx, "roof1").profile = NodeProfile(position=Position(lat=51, lon=13), coverage=100)

    world.write(placed)
    plan = proposed(world, users=[{"name": "cam", "at": {"lat": 51.0005, "lon": 13}, "access": {"delay": "1ms"}}])
    assert world.commit(plan) is None


def test_the_scheduler_is_told_speeds_profiles_and_delays(world: World) -> None:
    told = world.snapshot()
    assert {node.name: node.speeds for node in told.nodes if node.speeds} == {"gate1": {"matrix": 1.0}}
    assert told.topology is not None
    assert {link.delay for link in told.topology.links} == {3000}
    faster = Measurement(kind="matrix", rates=[2 * MATRIX, 2 * MATRIX], source="test")
    world.write(lambda tx: scores.take_reports(tx, [ScoreReport(node="gate1", measurements=[faster])]))
    news = world.snapshot(SnapshotQuery(since=told.version, epoch=told.epoch))
    assert [(node.name, node.speeds) for node in news.nodes] == [("gate1", {"matrix": 2.0})]


def test_what_was_submitted_is_in_the_jobs_record(world: World) -> None:
    file = inspection_file(objective={"time": 1.0})
    record = world.job(world.submit(file))
    assert (record.users, record.requests, record.objective) == (file.users, file.requests, file.objective)
    assert [flow.message for flow in record.flows] == [10_000, 1000]


def test_a_move_keeps_what_the_application_asks_for_or_is_refused(world: World) -> None:
    world.add_nodes("shed1", "shed2", cpu=4000, memory=2**32)
    links = [
        {"src": "roof1", "dst": end, "bandwidth": "100Mbit", "delay": delay}
        for end, delay in (("gate1", "3ms"), ("shed1", "3ms"), ("shed2", "4ms"))
    ]
    world.put_topology(TopologyFile.model_validate({"links": links}))
    job = world.submit(inspection_file(requests=[request(deadline="44ms")], restart={"scope": "task"}))
    assert world.commit(world.propose(job, ["roof1", "gate1"], bandwidth=8_000_000)) is None
    world.network(job)
    world.tell(job, "running")
    detect = next(each.task for each in world.job(job).allocations if each.node == "gate1")
    with pytest.raises(Conflict, match="node shed1 was not measured for matrix"):
        ask(world, job, detect, "shed1", rate=8_000_000)
    measured = Measurement(kind="matrix", rates=[MATRIX, MATRIX], source="test")
    for node in ("shed1", "shed2"):
        world.write(lambda tx, node=node: scores.take_reports(tx, [ScoreReport(node=node, measurements=[measured])]))
    with pytest.raises(Conflict, match="request loop would take 46 ms of 44 ms"):
        ask(world, job, detect, "shed2", rate=8_000_000)
    assert ask(world, job, detect, "shed1", rate=8_000_000) is None
