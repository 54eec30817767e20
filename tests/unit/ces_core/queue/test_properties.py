"""What holds of CES-Multi whatever comes: capacity, promises, the bound, and the same decisions again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_runs import held, parameters, workloads

from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Cluster
from ces_core.queue.cycle import cycle
from ces_core.queue.parameters import Parameters
from ces_core.queue.reservations import Reservation
from ces_core.queue.state import Decisions, State
from ces_core.registry import get_solver
from ces_core.search.solver import SEARCH
from ces_core.solver import Solver
from ces_sim.arrivals import TimedJob, poisson
from ces_sim.cluster import simulate
from ces_sim.outcome import Outcome
from ces_sim.queue_policies import Cycles
from ces_sim.queue_policy import Desk

GREEDY = get_solver("greedy")
FIRST_FIT = get_solver("first-fit-decreasing")


@dataclass
class Watched:
    """CES-Multi with somebody who looks at every decision."""

    parameters: Parameters
    look: Callable[[Desk, Decisions], None]
    name: str = "watched"

    def serve(self, desk: Desk) -> None:
        state = State(desk.now, desk.ledger, desk.queue, desk.running, desk.freed, desk.memory)
        Cycles(self.name, self.parameters).serve(desk)
        self.look(desk, cycle(state_before(state, desk), self.parameters, desk.solve))


def state_before(state: State, desk: Desk) -> State:
    """The state after the cycle, for another one right behind it: nothing has changed but what was started."""
    return replace(state, waiting=desk.queue, running=desk.running, memory=desk.memory)


@dataclass
class Promises:
    """Every promise that was ever made, by job: when it was looked at, and what was promised."""

    made: dict[str, list[tuple[float, Reservation]]] = field(default_factory=dict)

    def __call__(self, desk: Desk, again: Decisions) -> None:
        assert not again.starts  # all that could start has started
        for each in desk.memory.reservations:
            self.made.setdefault(each.job, []).append((desk.now, each))


def room(cluster: Cluster) -> dict[tuple[str, ...], float]:
    """What there is for jobs, by names."""
    names = cluster.topology.nodes
    free = {
        (what, name): cluster.node_free[row, n]
        for n, name in enumerate(names)
        for row, what in enumerate(("cpu", "memory"))
    }
    ends = zip(cluster.topology.link_src.tolist(), cluster.topology.link_dst.tolist(), strict=True)
    return free | {(names[a], names[b]): cluster.bandwidth_free[link] for link, (a, b) in enumerate(ends)}


@pytest.mark.parametrize("solver", [GREEDY, SEARCH], ids=lambda solver: solver.name)
@settings(max_examples=40, deadline=None)
@given(given_=workloads(), parameters=parameters, margin=st.sampled_from([None, 1, 60]))
def test_capacity_is_never_exceeded_and_every_job_is_settled(
    solver: Solver, given_: tuple[Cluster, list[TimedJob]], parameters: Parameters, margin: int | None
) -> None:
    """Search counts what it leaves for later jobs where that is asked of it."""
    cluster, jobs = given_
    outcome = simulate(cluster, jobs, solver, Cycles("multi", replace(parameters, preemption=margin)))
    assert margin is not None or not any(fate.stopped for fate in outcome.fates)
    for moment in (fate.started_s for fate in outcome.accepted):
        uses = [held(fate) for fate in outcome.accepted if fate.started_s <= moment < fate.ended_s]
        for cell, most in room(cluster).items():
            assert math.fsum(use.get(cell, 0.0) for use in uses) <= most * (1 + 1e-9) + 1e-9, cell
    assert all((fate.started_s is None) == (fate.left_s is not None) for fate in outcome.fates)
    assert (outcome.cluster.node_used == cluster.node_used).all()


@settings(max_examples=40, deadline=None)
@given(given_=workloads(), parameters=parameters)
def test_a_promise_is_kept_where_jobs_run_as_long_as_they_said(
    given_: tuple[Cluster, list[TimedJob]], parameters: Parameters
) -> None:
    cluster, jobs = given_
    promises = Promises()
    outcome = simulate(cluster, jobs, FIRST_FIT, Watched(replace(parameters, window=None, reservations=2), promises))
    starts = {fate.job.name: fate.started_s for fate in outcome.fates}
    for name, made in promises.made.items():
        started = starts[name]
        assert started is not None
        for _, promise in made:
            if promise.start_s is not None:
                assert started <= promise.start_s + 1e-6
        for (_, earlier), (_, later) in pairwise(made):
            assert later.begin <= earlier.begin


@settings(max_examples=40, deadline=None)
@given(given_=workloads(), parameters=parameters)
def test_nobody_overdue_waits_while_it_could_run(
    given_: tuple[Cluster, list[TimedJob]], parameters: Parameters
) -> None:
    """The oldest of them is held up by nobody's reservation but those promised before. A solver that had no place may
    find one once others have taken room; it is not asked again until something becomes free."""
    cluster, jobs = given_
    limited = replace(parameters, window=None)

    def look(desk: Desk, again: Decisions) -> None:
        promised = {each.job for each in desk.memory.reservations}
        for job in sorted(desk.queue, key=lambda job: (job.submitted_s, job.name)):
            if desk.now - job.submitted_s >= limited.overdue_s and (not promised or promised == {job.name}):
                refusal = desk.memory.refusals.get(job.name)
                asked = refusal is not None and refusal.freed == desk.freed
                assert asked or desk.solve(job, desk.cluster).plan is None
            break

    simulate(cluster, jobs, FIRST_FIT, Watched(limited, look))


@settings(max_examples=25, deadline=None)
@given(given_=workloads(), parameters=parameters, order=st.randoms(use_true_random=False))
def test_the_same_again_whatever_the_order_in_which_jobs_are_listed(
    given_: tuple[Cluster, list[TimedJob]], parameters: Parameters, order: st.randoms
) -> None:
    cluster, jobs = given_

    def fates(outcome: Outcome) -> dict[str, tuple[float | None, object]]:
        return {fate.job.name: (fate.started_s, fate.plan) for fate in outcome.fates}

    class Shuffled(Cycles):
        def _cycle(self, desk: Desk) -> bool:
            queue, running = desk.queue, desk.running
            order.shuffle(queue)
            order.shuffle(running)
            state = State(desk.now, desk.ledger, queue, running, desk.freed, desk.memory)
            again = [cycle(state, self.parameters, desk.solve) for _ in range(2)]
            assert again[0].starts == again[1].starts
            more = super()._cycle(desk)
            assert [start.job for start in again[0].starts] == [
                job.name for job in desk.running if job.name not in {each.name for each in running}
            ]
            return more

    first = simulate(cluster, jobs, FIRST_FIT, Cycles("multi", parameters))
    assert fates(first) == fates(simulate(cluster, jobs, FIRST_FIT, Shuffled("multi", parameters)))


def test_a_watched_run_is_the_run() -> None:
    cluster = read_instance(random_instance("tight", 3, nodes=5)).cluster
    jobs = [replace(job, expected_s=job.duration_s) for job in poisson(30, 0.5, 20, (2, 3), 7)]
    promises = Promises()
    outcome = simulate(cluster, jobs, FIRST_FIT, Watched(Parameters(bound_s=40), promises))
    assert promises.made, "no promise was made: the other tests would say nothing"
    plain = simulate(cluster, jobs, FIRST_FIT, Cycles("multi", Parameters(bound_s=40)))
    assert [fate.started_s for fate in plain.fates] == [fate.started_s for fate in outcome.fates]
    assert pytest.approx(0) == plain.cluster.node_used.sum() - cluster.node_used.sum()
