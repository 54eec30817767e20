"""Who makes room for a more urgent job, and who does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from queue_desk import PLAIN, Desk, one_node, solve, started, wants

from ces_core.model.errors import ProblemError
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.queue.cycle import cycle
from ces_core.queue.jobs import WaitingJob, kept_by, whose
from ces_core.queue.ledger import LINK, cells_of
from ces_core.queue.parameters import Parameters, Tenant
from ces_core.queue.preemption import given_up
from ces_core.queue.reservations import Preempted
from ces_core.queue.state import Decisions, State
from ces_core.registry import get_solver
from ces_sim.arrivals import TimedJob
from ces_sim.cluster import simulate
from ces_sim.queue_policies import Cycles

PREEMPTING = replace(PLAIN, preemption=20)


def desk_of(*running: tuple[str, float, int], cpu: float = 10, parameters: Parameters = PREEMPTING) -> Desk:
    """One node with these jobs: name, CPU and priority; the first has run longest."""
    cluster = one_node(cpu)
    desk = Desk(cluster, parameters)
    for i, (name, takes, priority) in enumerate(running):
        desk.run(wants(cluster, name, takes, priority=priority, lasts=1000), since=i, preemption="stop")
    return desk


def preempted(decided: Decisions) -> dict[str, tuple[str, ...]]:
    return {job: each.names for job, each in decided.preempted.items()}


def test_nobody_is_preempted_unless_that_is_wanted() -> None:
    desk = desk_of(("low", 10, 0), parameters=PLAIN)
    decided = desk.at(10, wants(desk.cluster, "urgent", 5, submitted=10, priority=100))
    assert not decided.preempted
    assert not decided.memory.reservations


@pytest.mark.parametrize(("priority", "who"), [(49, {}), (50, {"urgent": ("low",)})])
def test_only_priority_that_is_lower_by_the_margin_makes_room(priority: int, who: dict[str, tuple[str, ...]]) -> None:
    desk = desk_of(("low", 10, 30))
    assert preempted(desk.at(10, wants(desk.cluster, "urgent", 5, submitted=10, priority=priority))) == who


def test_no_more_are_preempted_than_are_needed_and_those_that_lose_least() -> None:
    desk = desk_of(("old", 3, 10), ("young", 3, 10), ("better", 3, 40))
    decided = desk.at(10, wants(desk.cluster, "urgent", 4, submitted=10, priority=90))
    assert preempted(decided) == {"urgent": ("young",)}
    assert decided.queue[0].held_by == ("young",)
    assert decided.queue[0].text() == "less urgent jobs are making room for it; held by young; room is kept for it"


def test_a_job_that_the_place_does_not_need_is_left_alone() -> None:
    cluster = Cluster.make([Node("a", cpu=4), Node("b", cpu=10)], [])
    desk = Desk(cluster, PREEMPTING)
    desk.run(wants(cluster, "b", 9, priority=0, lasts=1000), preemption="stop")
    desk.run(wants(cluster, "a", 4, priority=0, lasts=1000), since=5, preemption="stop")  # to go first, and in vain
    decided = desk.at(10, wants(cluster, "urgent", 8, submitted=10, priority=90))
    assert preempted(decided) == {"urgent": ("b",)}


def test_room_that_is_being_made_is_kept_from_everybody_else() -> None:
    desk = desk_of(("low", 8, 0))
    decided = desk.at(10, wants(desk.cluster, "urgent", 9, submitted=10, priority=90))
    assert preempted(decided) == {"urgent": ("low",)}
    small = wants(desk.cluster, "small", 2, submitted=11, lasts=5, priority=95)
    decided = desk.at(11, small)  # it is free, and needed as soon as the other has gone
    assert not decided.starts
    assert preempted(decided) == {"urgent": ("low",)}  # told again, as it is still there
    assert not desk.at(12).starts
    desk.end("low")
    assert started(desk.at(13)) == ["urgent"]


def test_who_is_leaving_is_not_told_again() -> None:
    desk = desk_of(("low", 8, 0))
    desk.at(10, wants(desk.cluster, "urgent", 9, submitted=10, priority=90))
    desk.running = [replace(job, expected_s=0, preemption=None) for job in desk.running]
    decided = desk.at(11)
    assert not decided.preempted
    assert decided.memory.reservations[0].job == "urgent"


def test_a_promise_of_room_that_nobody_makes_any_more_is_dropped() -> None:
    desk = desk_of(("low", 8, 0))
    desk.at(10, wants(desk.cluster, "urgent", 9, submitted=10, priority=90))
    desk.parameters = PLAIN
    decided = desk.at(11, wants(desk.cluster, "small", 2, submitted=11))
    assert started(decided) == ["small"]
    assert not decided.memory.reservations


def test_a_job_that_no_preemption_helps_is_tried_once_until_something_changes() -> None:
    desk = desk_of(("low", 4, 0), ("equal", 6, 80))
    decided = desk.at(10, wants(desk.cluster, "urgent", 5, submitted=10, priority=90))
    assert not decided.preempted
    assert decided.memory.unmoved["urgent"].victims == ("low",)
    assert desk.at(11).memory.unmoved == decided.memory.unmoved
    desk.end("equal")
    assert started(desk.at(12)) == ["urgent"]


def test_who_waits_for_quota_or_bandwidth_and_not_for_room_preempts_nobody() -> None:
    cluster = Cluster.make([Node("a", cpu=1), Node("b", cpu=1)], [Link("a", "b", 10), Link("b", "a", 10)])
    desk = Desk(cluster, replace(PREEMPTING, declined=0.1, patience_s=300))
    taking = Problem.make(cluster, [Task("x", cpu=0.1), Task("y", cpu=0.1)], [Flow("x", "y", 1, 1)], name="low")
    desk.run(WaitingJob("low", taking, 0, priority=0, expected_s=1000), preemption="stop")
    urgent = wants(cluster, "urgent", 0.5, submitted=10, priority=90)
    assert started(desk.at(10, urgent)) == ["urgent"]
    assert not desk.at(11).preempted


def test_nobody_starts_to_be_preempted_for_a_job_that_was_there_before() -> None:
    desk = desk_of(("equal", 10, 90))
    cluster = desk.cluster
    low = wants(cluster, "low", 6, priority=10, lasts=20)  # by its score it would come first
    urgent = wants(cluster, "urgent", 6, submitted=9, priority=90, lasts=1000)
    assert not desk.at(10, low, urgent).starts
    desk.end("equal")
    decided = desk.at(11)
    assert started(decided) == ["urgent"]
    assert not decided.preempted


def test_not_even_an_overdue_job_starts_to_be_preempted() -> None:
    desk = desk_of(("equal", 10, 90), parameters=replace(PREEMPTING, bound_s=100))
    overdue = wants(desk.cluster, "overdue", 6, priority=10, lasts=20)
    decided = desk.at(200, overdue)
    assert [each.job for each in decided.memory.reservations] == ["overdue"]
    assert not decided.queue[0].reserved, "somebody more urgent may take it: nobody is promised more"
    desk.at(201, wants(desk.cluster, "urgent", 6, submitted=201, priority=90, lasts=1000))
    desk.end("equal")
    decided = desk.at(202)
    assert started(decided) == ["urgent"]
    assert [each.job for each in decided.memory.reservations] == ["overdue"]


def test_a_promise_that_a_victim_cannot_keep_any_more_is_made_by_another() -> None:
    desk = desk_of(("first", 4, 0), ("second", 4, 0))
    decided = desk.at(10, wants(desk.cluster, "urgent", 5, submitted=10, priority=90))
    assert preempted(decided) == {"urgent": ("second",)}
    desk.running[1] = replace(desk.running[1], preemption=None)  # its user has paused it
    assert preempted(desk.at(11)) == {"urgent": ("first",)}
    desk.running[0] = replace(desk.running[0], preemption=None)
    decided = desk.at(12, wants(desk.cluster, "small", 2, submitted=12))
    assert started(decided) == ["small"], "room that nobody can make is not kept"


def test_a_job_that_was_to_be_suspended_and_starts_again_is_stopped() -> None:
    cluster, low = chain()
    desk = Desk(cluster, PREEMPTING)
    desk.run(low, preemption="suspend")
    urgent = wants(cluster, "urgent", 2, memory=4, submitted=10, priority=90)
    assert desk.at(10, urgent).preempted == {"urgent": Preempted(suspended=("low",))}
    desk.running = [replace(each, preemption="stop") for each in desk.running]
    assert desk.at(11).preempted == {"urgent": Preempted(stopped=("low",))}


def test_a_job_that_is_to_be_suspended_may_be_about_to_end_when_another_wants_room() -> None:
    cluster, low = chain()
    desk = Desk(cluster, PREEMPTING)
    desk.run(low, preemption="suspend")
    desk.run(wants(cluster, "third", 0, memory=1, priority=0, lasts=5000), preemption="stop")
    desk.at(10, wants(cluster, "urgent", 2, memory=3, submitted=10, priority=90))
    decided = desk.at(995, wants(cluster, "other", 4, memory=3, submitted=995, priority=90))
    assert decided.preempted == {"urgent": Preempted(suspended=("low",))}, "what it gives up is enough for both"


def test_room_that_is_on_its_way_is_still_kept_when_nobody_is_to_be_preempted_any_more() -> None:
    desk = desk_of(("low", 8, 0))
    desk.at(10, wants(desk.cluster, "urgent", 9, submitted=10, priority=90))
    desk.running = [replace(job, expected_s=0, preemption=None) for job in desk.running]
    desk.parameters = PLAIN
    assert not desk.at(11, wants(desk.cluster, "small", 2, submitted=11)).starts
    desk.end("low")
    assert started(desk.at(12)) == ["urgent"]


def test_those_that_nothing_helps_do_not_use_up_everybodys_turn() -> None:
    desk = desk_of(("low", 5, 75), ("other", 5, 90), parameters=replace(PREEMPTING, window=2))
    lost = [wants(desk.cluster, f"lost-{i}", 9, submitted=10, priority=99) for i in range(5)]
    helped = wants(desk.cluster, "helped", 5, submitted=10, priority=95)
    decided = desk.at(10, *lost, helped)
    for second in range(11, 15):
        if decided.preempted or not decided.more:
            break
        decided = desk.at(second)
    assert preempted(decided) == {"helped": ("low",)}


def test_what_is_promised_counts_for_the_tenants_quota() -> None:
    tenants = (Tenant("a", quota={"cpu": 0.5}), Tenant("default"))
    desk = desk_of(("v1", 5, 0), ("v2", 5, 0), parameters=replace(PREEMPTING, tenants=tenants))
    urgent = [wants(desk.cluster, f"u{i}", 4, submitted=10, priority=90, tenant="a") for i in range(2)]
    decided = desk.at(10, *urgent)
    assert len(decided.preempted) == 1
    desk.end(next(iter(decided.preempted.values())).names[0])
    assert len(started(desk.at(11))) == 1
    assert not desk.at(12).preempted


def test_nobody_is_preempted_for_a_job_that_starts_within_moments_anyway() -> None:
    desk = desk_of(("leaving", 5, 90), ("low", 5, 0))
    desk.running[0] = replace(desk.running[0], expected_s=0, preemption=None)
    urgent = wants(desk.cluster, "urgent", 5, submitted=10, priority=90)
    assert not desk.at(10, urgent).preempted
    desk = desk_of(("low", 10, 0))
    desk.running[0] = replace(desk.running[0], expected_s=1005)
    assert not desk.at(1000, urgent).preempted
    assert preempted(desk.at(1011)) == {"urgent": ("low",)}, "it runs for longer than it said"


def test_what_was_found_for_a_job_that_asks_for_something_else_now_is_void() -> None:
    cluster = one_node(4)
    desk = Desk(cluster, PREEMPTING)
    decided = desk.at(10, wants(cluster, "job", 5))
    assert decided.refused["job"].permanent
    smaller = wants(cluster, "job", 4)
    state = State(11, desk.ledger, [smaller], [], desk.freed, decided.memory, frozenset({"job"}))
    assert started(cycle(state, PREEMPTING, solve)) == ["job"]


def chain() -> tuple[Cluster, WaitingJob]:
    """A job that takes all of two nodes' CPU and of the link between them, and half of their memory."""
    nodes = [Node("a", cpu=4, memory=8), Node("b", cpu=4, memory=8)]
    cluster = Cluster.make(nodes, [Link("a", "b", 10), Link("b", "a", 10)])
    tasks = [Task("x", cpu=4, memory=4), Task("y", cpu=4, memory=4)]
    problem = Problem.make(cluster, tasks, [Flow("x", "y", 8, 8)], name="low")
    return cluster, WaitingJob("low", problem, 0, priority=0, expected_s=1000)


def test_who_can_be_suspended_keeps_memory_where_that_is_enough() -> None:
    cluster, low = chain()
    desk = Desk(cluster, PREEMPTING)
    desk.run(low, preemption="suspend")
    decided = desk.at(10, wants(cluster, "urgent", 2, memory=4, submitted=10, priority=90))
    assert decided.preempted == {"urgent": Preempted(suspended=("low",))}
    held = desk.ledger.held("low")
    assert {cell[0] for cell in given_up(held, suspended=True)} == {0, LINK}
    assert given_up(held, suspended=False) == held


def test_who_can_be_suspended_is_stopped_where_its_memory_is_needed() -> None:
    cluster, low = chain()
    desk = Desk(cluster, PREEMPTING)
    desk.run(low, preemption="suspend")
    decided = desk.at(10, wants(cluster, "urgent", 2, memory=6, submitted=10, priority=90))
    assert decided.preempted == {"urgent": Preempted(stopped=("low",))}


def test_of_those_that_are_stopped_only_those_whose_memory_is_needed_are() -> None:
    cluster = Cluster.make([Node("a", cpu=4, memory=8), Node("b", cpu=4, memory=8)], [])
    desk = Desk(cluster, PREEMPTING)
    desk.run(wants(cluster, "first", 4, memory=2, priority=0, lasts=1000), preemption="suspend")
    desk.run(wants(cluster, "second", 4, memory=6, priority=0, lasts=1000), since=1, preemption="suspend")
    tasks = [Task("x", cpu=4, memory=5), Task("y", cpu=4, memory=5)]
    urgent = WaitingJob("urgent", Problem.make(cluster, tasks, name="urgent"), 10, priority=90)
    assert desk.at(10, urgent).preempted == {"urgent": Preempted(suspended=("first",), stopped=("second",))}


def test_a_suspended_job_goes_on_where_it_is_when_there_is_room() -> None:
    cluster, low = chain()
    desk = Desk(cluster, PREEMPTING)
    desk.run(low, preemption="suspend")
    desk.at(10, wants(cluster, "urgent", 2, memory=4, submitted=10, priority=90, lasts=10))
    held = desk.ledger.held("low")
    plan_nodes = {index for resource, index in held if resource == 0}
    desk.end("low")
    rest = {cell: amount for cell, amount in held.items() if cell not in given_up(held, suspended=True)}
    desk.ledger = desk.ledger.of(cluster, {kept_by("low"): rest})
    assert whose(kept_by("low")) == "low"
    desk.running = [replace(each, name=kept_by("low"), expected_s=None) for each in desk.running]
    tasks = [Task("x", cpu=4, allowed=("a",)), Task("y", cpu=4, allowed=("b",))]
    waits = WaitingJob("low", Problem.make(cluster, tasks, [Flow("x", "y", 8, 8)], name="low"), 0, 0, expected_s=1000)
    assert started(desk.at(11, waits)) == ["urgent"]
    desk.end("urgent")
    decided = desk.at(21)
    assert started(decided) == ["low"]
    cells = cells_of(waits.problem, decided.starts[0].plan)
    assert {index for resource, index in cells if resource == 0} == plan_nodes


@settings(max_examples=60, deadline=None)
@example(running=[(1, 0), (3, 0)], waiting=[(2, 1), (2, 2), (3, 2)], margin=1)
@example(running=[(1, 0), (2, 0), (5, 0)], waiting=[(2, 1), (2, 2), (7, 2)], margin=1)
@given(
    running=st.lists(st.tuples(st.integers(1, 5), st.integers(0, 100)), max_size=6),
    waiting=st.lists(st.tuples(st.integers(1, 10), st.integers(0, 100)), max_size=5),
    margin=st.integers(1, 60),
)
def test_who_makes_room_is_less_urgent_and_what_is_kept_fits(
    running: list[tuple[int, int]], waiting: list[tuple[int, int]], margin: int
) -> None:
    cluster = one_node(sum(takes for takes, _ in running) + 1)
    desk = Desk(cluster, replace(PLAIN, preemption=margin))
    for i, (takes, priority) in enumerate(running):
        desk.run(wants(cluster, f"r{i}", takes, priority=priority, lasts=1000), since=i, preemption="stop")
    jobs = [wants(cluster, f"w{i}", takes, submitted=50, priority=p) for i, (takes, p) in enumerate(waiting)]
    urgency = {job.name: job.priority for job in (*desk.running, *jobs)}
    told: set[str] = set()
    decided = desk.at(50, *jobs)
    for job, each in decided.preempted.items():
        assert not told & {*each.names}  # nobody makes room twice
        told |= {*each.names}
        assert all(urgency[job] - urgency[name] >= margin for name in each.names)
    for name in told:
        desk.end(name)
    then = desk.at(51)
    runs = set(started(then))
    others = [urgency[name] for name in (runs | then.preempted.keys()) - decided.preempted.keys()]
    for job in decided.preempted.keys() - runs:  # a more urgent job needs the room, and comes first
        assert any(urgency[job] < other for other in others)


def test_in_a_simulation_who_made_room_begins_anew() -> None:
    cluster = one_node(4)
    jobs = [
        TimedJob("low", 0.0, 100.0, (Task("t", cpu=4),), (), expected_s=100.0, priority=0),
        TimedJob("urgent", 6.0, 3.0, (Task("t", cpu=1),), (), expected_s=3.0, priority=90),
    ]
    outcome = simulate(cluster, jobs, get_solver("greedy"), Cycles("multi", PREEMPTING))
    low, urgent = outcome.fates
    assert (urgent.started_s, urgent.ended_s, urgent.stopped) == (6.0, 9.0, 0)
    assert (low.started_s, low.ended_s, low.stopped) == (9.0, 109.0, 1)


@pytest.mark.parametrize("margin", [0, -1, 101])
def test_a_margin_that_makes_no_sense_is_refused_by_name(margin: int) -> None:
    with pytest.raises(ProblemError, match="preemption"):
        Parameters(preemption=margin)
