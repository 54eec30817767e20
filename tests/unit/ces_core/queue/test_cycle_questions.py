"""What CES-Multi asks the solver of single jobs: of whom, how often, on which nodes, and what it makes of an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from queue_desk import PLAIN, Desk, one_node, solve, started, wants

from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.plan import Result
from ces_core.model.problem import Cluster, Problem
from ces_core.model.reason import TooFewNodes
from ces_core.queue.cycle import cycle
from ces_core.queue.jobs import RunningJob, WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.queue.state import Decisions, Memory, State


def test_the_window_bounds_the_refusals_and_rolls_on() -> None:
    asked: list[str] = []

    def counting(job: WaitingJob, cluster: Cluster) -> Result:
        asked.append(job.name)
        return solve(job, cluster)

    nodes = [Node("a", cpu=3), Node("b", cpu=3), Node("c", cpu=3)]
    cluster = Cluster.make(nodes, [Link("a", "b", 15, bandwidth_used=9), Link("b", "a", 15, bandwidth_used=9)])
    problem = Problem.make(cluster, [Task("x", cpu=2), Task("y", cpu=2)], [Flow("x", "y", 10, 10)])
    jobs = [WaitingJob(f"j{i}", problem, i, expected_s=9) for i in range(10)]
    parameters = replace(PLAIN, window=4)
    memory = Memory()
    ledger, other = Ledger(cluster), WaitingJob("other", Problem.make(cluster, [Task("0", cpu=3, allowed=("c",))]), 0)
    plan = solve(other, cluster).plan
    assert plan is not None
    ledger.hold(other.name, other.problem, plan)
    running = [RunningJob(other.name, 0, other.tenant, None)]  # whose end will bring a cycle
    for cycles in range(1, 4):
        decided = cycle(State(10, ledger, jobs, running, 0, memory), parameters, counting)
        memory = decided.memory
        assert len(asked) == min(4 * cycles, 10)
    assert len(set(asked)) == 10  # whom nothing can have helped is not tried again
    assert not [queue_status for queue_status in decided.queue if queue_status.reason is None]
    cycle(State(10, ledger, jobs, running, 1, memory), parameters, counting)
    assert len(asked) == 14


def test_a_cycle_says_that_it_did_not_come_to_everybody() -> None:
    cluster = one_node()
    jobs = [wants(cluster, f"j{i}", 4, submitted=i) for i in range(3)]
    desk = Desk(cluster, replace(PLAIN, starts=1))
    first, second = desk.at(3, *jobs), desk.at(3)
    assert [(started(decided), decided.more) for decided in (first, second)] == [(["j0"], True), (["j1"], False)]


def test_what_will_never_fit_is_not_tried_again_when_something_becomes_free() -> None:
    cluster = Cluster.make([Node("a", cpu=3), Node("b", cpu=3)], [])  # no way between them
    problem = Problem.make(cluster, [Task("x", cpu=2), Task("y", cpu=2)], [Flow("x", "y", 1, 2)])
    asked: list[str] = []

    def counting(job: WaitingJob, cluster: Cluster) -> Result:
        asked.append(job.name)
        return solve(job, cluster)

    memory = Memory()
    for freed in range(3):
        decided = cycle(State(90, Ledger(cluster), [WaitingJob("j", problem, 0)], [], freed, memory), PLAIN, counting)
        memory = decided.memory
        assert [queue_status.reason and queue_status.reason.permanent for queue_status in decided.queue] == [True]
    assert asked == ["j"]


def test_the_window_is_not_used_up_before_the_first_job_of_a_tenant() -> None:
    cluster = Cluster.make([Node("a", cpu=3), Node("b", cpu=3), Node("c", cpu=1)], [])
    large = Problem.make(cluster, [Task(str(t), cpu=2) for t in range(3)])
    jobs = [WaitingJob(f"j{i}", large, i, tenant="many") for i in range(20)]  # overdue
    jobs.append(wants(cluster, "first", 1, submitted=80, tenant="other"))
    decided = cycle(State(90, Ledger(cluster), jobs, [], 0), replace(PLAIN, window=2), solve)
    assert (started(decided), len(decided.refused), decided.more) == (["first"], 2, True)


def test_the_solver_is_not_asked_what_the_nodes_alone_refuse() -> None:
    def asked(job: WaitingJob, cluster: Cluster) -> Result:
        raise AssertionError(f"the solver was asked about {job.name}")

    cluster = Cluster.make([Node("a", cpu=5, memory=1), Node("b", cpu=3, memory=9)], [])
    together = [Task(str(t), cpu=2) for t in range(4)]  # 8 in all are free, but b takes one of them and a two
    jobs = [WaitingJob("together", Problem.make(cluster, together), 0), wants(cluster, "alone", 4, memory=4)]
    decided = cycle(State(0, Ledger(cluster), jobs, [], 0), PLAIN, asked)
    assert {job: (why.code, why.permanent, why.proven) for job, why in decided.refused.items()} == {
        "together": ("packing", True, True),
        "alone": ("no-node-fits", True, True),
    }


def test_nodes_are_counted_on_what_is_free_now_whatever_the_solver_saw() -> None:
    """A reservation leaves less for others; a sentence about what is free must not speak of that."""
    cluster = Cluster.make([Node(name, cpu=3) for name in "abc"], [])
    desk = Desk(cluster)
    pair = Problem.make(cluster, [Task(str(t), cpu=2) for t in range(2)])
    desk.run(wants(cluster, "long", 2, lasts=500))
    desk.run(wants(cluster, "other", 2, lasts=50))
    decided = desk.at(10, WaitingJob("j", pair, 0))
    (status,) = decided.queue
    assert status.reason is not None
    assert (status.reason.code, status.reason.nodes) == ("packing", TooFewNodes({"cpu": 2.0}, 2, 1, 1, True))
    remembered = cycle(State(20, desk.ledger, [WaitingJob("j", pair, 0)], [], 0, decided.memory), PLAIN, solve)
    assert [each.reason for each in remembered.queue] == [status.reason]
    desk = Desk(cluster)
    desk.run(wants(cluster, "long", 2, lasts=500))
    every = Problem.make(cluster, [Task(str(t), cpu=2) for t in range(3)])
    overdue, endless = WaitingJob("every", every, 0, expected_s=9), WaitingJob("j", pair, 400)
    reserved, held_up = desk.at(400, overdue, endless).queue
    assert (reserved.reserved, held_up.reason and held_up.reason.code) == (True, "packing")
    assert reserved.reason is not None
    assert reserved.reason.nodes == TooFewNodes({"cpu": 2.0}, 3, 2, 2, True)
    assert held_up.reason is not None
    assert held_up.reason.nodes is None, "two nodes are free, and kept for another job"


def test_a_job_waits_for_bandwidth_while_others_will_end_and_not_longer_than_its_patience() -> None:
    cluster = Cluster.make([Node("a", cpu=6), Node("b", cpu=4)], [Link("a", "b", 10), Link("b", "a", 10)])
    talkative = Problem.make(cluster, [Task("x", cpu=3), Task("y", cpu=3)], [Flow("x", "y", 1, 20)])
    parameters = replace(PLAIN, declined=0.1, patience_s=30)

    def at(now: float, lasts: float | None) -> Decisions:
        desk = Desk(cluster, parameters)
        desk.run(wants(cluster, "other", 1, lasts=lasts))
        return desk.at(now, WaitingJob("j", talkative, 0, expected_s=9))

    early = at(10, lasts=50)
    assert started(early) == []
    assert "satisfied to 47 %, 90 % are wanted" in early.queue[0].text()
    assert started(at(30, lasts=50)) == ["j"]
    assert started(at(10, lasts=None)) == ["j"]  # nobody has said that there will be more
    assert started(Desk(cluster, parameters).at(10, WaitingJob("j", talkative, 0, expected_s=9))) == ["j"]


def test_a_refusal_for_want_of_bandwidth_ends_with_the_patience() -> None:
    cluster = Cluster.make([Node("a", cpu=6), Node("b", cpu=4)], [Link("a", "b", 10), Link("b", "a", 10)])
    talkative = Problem.make(cluster, [Task("x", cpu=3), Task("y", cpu=3)], [Flow("x", "y", 1, 20)])
    desk = Desk(cluster, replace(PLAIN, declined=0.1, patience_s=30))
    desk.run(wants(cluster, "other", 1, lasts=99))
    assert started(desk.at(10, WaitingJob("j", talkative, 0, expected_s=9))) == []
    assert started(desk.at(30)) == ["j"]  # though nothing has become free


def with_an_odd_node() -> Cluster:
    nodes = [Node("a", cpu=10, memory=10), Node("b", cpu=10, memory=10), Node("c", cpu=10, memory=2)]
    return Cluster.make(nodes, [])


def test_where_it_is_crowded_room_is_left_for_large_jobs() -> None:
    cluster = with_an_odd_node()
    jobs = [wants(cluster, "small", 5, memory=1, lasts=100)]
    jobs += [wants(cluster, name, 9, memory=9, lasts=200, submitted=1) for name in ("large", "other")]
    assert started(Desk(cluster).at(1, *jobs)) == ["small", "large", "other"]
    # A solver that balances puts the small one where most is free.
    assert len(started(Desk(cluster, replace(PLAIN, crowded=None)).at(1, *jobs))) == 2


def test_where_there_is_room_enough_a_job_goes_where_the_load_is_balanced() -> None:
    cluster = with_an_odd_node()
    small = wants(cluster, "small", 5, memory=1)
    (start,) = Desk(cluster).at(1, small).starts
    (alone,) = Desk(cluster, replace(PLAIN, crowded=None)).at(1, small).starts
    assert start.plan == alone.plan
    (spared,) = Desk(cluster, replace(PLAIN, crowded=0.1)).at(1, small).starts
    assert spared.plan.assignments["t"] == "c" != alone.plan.assignments["t"]


@pytest.mark.parametrize(("declined", "together"), [(0.1, True), (0.6, False), (None, False)])
def test_room_for_later_jobs_costs_no_more_bandwidth_than_is_declined(declined: float | None, together: bool) -> None:
    cluster = Cluster.make([Node("a", cpu=6), Node("b", cpu=4)], [Link("a", "b", 10), Link("b", "a", 10)])
    talkative = Problem.make(cluster, [Task("x", cpu=3), Task("y", cpu=3)], [Flow("x", "y", 1, 20)])

    def apart(job: WaitingJob, where: Cluster) -> Result:
        return solve(
            job, where.with_used(np.maximum(where.node_used, [[3.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), where.link_used)
        )

    parameters = replace(PLAIN, crowded=0.0, declined=declined, patience_s=0)
    state = State(1, Ledger(cluster), [WaitingJob("j", talkative, 0, expected_s=9)], [], 0)
    (start,) = cycle(state, parameters, solve, apart).starts
    assert (len(set(start.plan.assignments.values())) == 1) is together


def test_a_solver_that_cannot_count_what_it_leaves_is_asked_as_it_is() -> None:
    cluster = with_an_odd_node()
    state = State(1, Ledger(cluster), [wants(cluster, "small", 5, memory=1)], [], 0)
    crowded = replace(PLAIN, crowded=0.0)
    (start,) = cycle(state, crowded, solve).starts
    assert start.plan == solve(state.waiting[0], cluster).plan
