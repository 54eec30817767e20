"""What holds of the queue whatever comes: nothing is given twice, no job proposed twice; no flood delays the first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count

import pytest
from cluster_state import MBIT, NOW, job, node, view_of, wire
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_looks import SOON, placing

from ces_common.messages.plans import PlanRejected
from ces_common.messages.records import AllocationRecord, FlowRecord, JobRecord
from ces_common.states import JobState
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.queue.parameters import Parameters
from ces_core.registry import get_solver
from ces_scheduler.cycle_input import STARTS, LastCycle, Proposed, cycle_input, is_queued, proposed_on
from ces_scheduler.cycle_run import run_cycle
from ces_scheduler.offer import Offer, offer_of
from ces_scheduler.proposals import Proposals

GREEDY = get_solver("greedy")
NAMES = ["a", "b", "c"]
NODES = [node(name, number) for number, name in enumerate(NAMES, 1)]
LINKS = [*wire("a", "b"), *wire("b", "c")]


@dataclass
class Desk:
    """Scheduler and manager without what is between them. Answers come when the test wants them."""

    jobs: dict[str, JobRecord]
    parameters: Parameters
    now: float = 0.0
    past: LastCycle | None = None
    proposals: Proposals = field(init=False)
    plans: dict[str, Proposed] = field(default_factory=dict)
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.proposals = Proposals(lambda: self.now)

    def offer(self) -> Offer:
        return offer_of(view_of(NODES, LINKS, self.jobs.values()))

    def round(self) -> list[str]:
        """The jobs that are proposed."""
        waiting = {name: job for name, job in self.jobs.items() if is_queued(job)}
        self.proposals.settle(waiting)
        due = [job for name, job in waiting.items() if name not in self.proposals.absent]
        now = SOON + timedelta(seconds=self.now)
        look = cycle_input(due, self.offer(), self.proposals.in_flight, now, self.parameters, self.past)
        played = run_cycle(1, look, placing(GREEDY, self.parameters))
        self.past = played.last
        for name, decision in played.starts.items():
            plan = str(next(self.numbers))
            self.plans[plan] = Proposed(self.jobs[name], decision.assignments, decision.flows)
            self.proposals.made(plan, self.plans[plan])
        return list(played.starts)

    def commit(self, plan: str) -> None:
        made = self.plans.pop(plan)
        asked = {(flow.src, flow.dst): flow for flow in made.job.flows}
        ranks = {task.name: task.rank for task in made.job.tasks}
        allocations = [
            AllocationRecord(id=name, task=name, rank=ranks[name], node=on, address="", port=1)
            for name, on in made.assignments.items()
        ]
        reserved = [
            FlowRecord(number=1, min=asked[flow.src, flow.dst].min, max=asked[flow.src, flow.dst].max, **dict(flow))
            for flow in made.flows
        ]
        given = {"allocations": allocations, "reserved": reserved, "state": JobState.RUNNING}
        self.jobs[made.job.id] = made.job.model_copy(update=given | {"started_at": SOON})

    def reject(self, plan: str) -> None:
        made = self.plans.pop(plan)
        self.proposals.rejected(PlanRejected(plan=plan, job=made.job.id, attempt=made.job.attempt, reason="no"))

    def end(self, name: str) -> None:
        del self.jobs[name]


@st.composite
def queues(draw: st.DrawFn) -> dict[str, JobRecord]:
    jobs = {}
    for number in range(draw(st.integers(1, 8))):
        tasks, low = draw(st.integers(1, 3)), draw(st.integers(1, 30)) * MBIT
        jobs[f"j{number}"] = job(
            f"j{number}",
            tasks=tasks,
            asked=[(0, 1, low, draw(st.integers(low, 90 * MBIT)))] if tasks > 1 else [],
            task={"cpu": draw(st.integers(100, 4000))},
            priority=draw(st.sampled_from([0, 50, 100])),
            tenant=draw(st.sampled_from(["x", "y"])),
            expected_s=draw(st.sampled_from([None, 10.0, 1000.0])),
            submitted_at=NOW - timedelta(hours=draw(st.sampled_from([0, 3]))),
        )
    return jobs


@settings(max_examples=40, deadline=None)
@given(
    jobs=queues(), parameters=st.builds(Parameters, window=st.sampled_from([1, 8]), starts=st.just(2)), data=st.data()
)
def test_nothing_is_given_twice_and_no_job_is_proposed_again_before_a_no(
    jobs: dict[str, JobRecord], parameters: Parameters, data: st.DataObject
) -> None:
    desk = Desk(jobs, parameters)
    proposed, refused = Counter[str](), Counter[str]()
    for _ in range(8):
        desk.now += 1.0
        proposed.update(desk.round())
        assert all(proposed[name] <= 1 + refused[name] for name in proposed)
        used = proposed_on(desk.offer(), desk.proposals.in_flight).cluster
        assert (used.node_used <= used.node_capacity).all()
        assert (used.link_used <= used.link_capacity).all()
        for plan in list(desk.plans):
            answer = data.draw(st.sampled_from(["yes", "no", "none"]))
            if answer == "yes":
                desk.commit(plan)
            elif answer == "no":
                refused[desk.plans[plan].job.id] += 1
                desk.reject(plan)
        for name in [name for name, each in desk.jobs.items() if each.allocations]:
            if data.draw(st.booleans()):
                desk.end(name)
        if data.draw(st.booleans()):
            desk.now += 7200.0  # others become overdue, proposals are lost
            for plan in list(desk.plans):
                refused[desk.plans.pop(plan).job.id] += 1


def test_who_waits_goes_on_to_run_though_the_scheduler_forgets_everything_again_and_again() -> None:
    jobs = {f"j{i}": job(f"j{i}", tasks=2, task={"cpu": 2500}, submitted_at=NOW) for i in range(6)}
    desk = Desk(dict(jobs), Parameters(starts=1))
    ran = []
    for _ in jobs:
        desk.past = None
        desk.proposals = Proposals(lambda: desk.now)
        ran += desk.round()
        for plan in list(desk.plans):
            desk.commit(plan)
        for name in [name for name, each in desk.jobs.items() if each.allocations]:
            desk.end(name)
    assert sorted(ran) == sorted(jobs)


@pytest.mark.parametrize(("fits", "age"), [(True, timedelta(0)), (False, timedelta(hours=5))], ids=["fits", "overdue"])
def test_a_flood_delays_nobodys_first_job(age: timedelta, fits: bool) -> None:
    """Counted in what the solver was asked before."""
    asked: list[str] = []

    class Counting:
        name, summary = "counting", ""

        def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
            asked.append(problem.name)
            return GREEDY.solve(problem, seed=seed)

    # Those that do not fit need a way to c, of which there is none that wide, as only a solver sees.
    wide = [] if fits else [(0, 1, 99 * MBIT, 99 * MBIT)]
    flood = [
        job(f"f{i}", tasks=2, asked=wide, task={"cpu": 3000}, tenant="many", submitted_at=NOW - age)
        for i in range(10_000)
    ]
    first = job("first", tasks=1, task={"cpu": 500}, tenant="other")
    parameters = Parameters(starts=STARTS)
    offer = offer_of(view_of(NODES, LINKS))
    look = cycle_input([*flood, first], offer, [], SOON, parameters, None)
    played = run_cycle(1, look, placing(Counting(), parameters))
    assert "first" in played.starts
    assert asked.index("first") <= (parameters.window or 0)
    assert len(asked) <= (parameters.window or 0) + STARTS + 1 + parameters.reservations


@pytest.mark.parametrize("crowded", [0.0, None])
def test_where_it_is_crowded_the_solver_counts_what_it_leaves_and_the_plan_says_so(crowded: float | None) -> None:
    parameters = Parameters(starts=STARTS, crowded=crowded)
    look = cycle_input([job("j", tasks=1)], offer_of(view_of(NODES, LINKS)), [], SOON, parameters, None)
    (decision,) = run_cycle(1, look, placing(Two("plain"), parameters)).starts.values()
    aware = crowded is not None
    assert decision.solver == ("counting" if aware else "plain")
    assert decision.considered()["sparing"] is aware


@dataclass(frozen=True)
class Two:
    """Says which of it was asked."""

    name: str
    summary: str = ""

    def with_lookahead(self) -> Two:
        return Two("counting")

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        return replace(GREEDY.solve(problem, seed=seed), solver=self.name)
