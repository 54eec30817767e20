"""Calls of the single-job solver, and what it answered. Pure but for the stopwatch, which is passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import structlog

from ces_core.model.errors import PolicyError
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Cluster, Problem
from ces_core.model.reason import Reason
from ces_core.queue.jobs import WaitingJob
from ces_core.queue.ledger import Ledger
from ces_core.search.diagnosis import SearchTrace
from ces_core.solver import Solver, with_lookahead
from ces_scheduler.job_problem import Refusals
from ces_scheduler.owner_forecast import OwnerForecast, without
from ces_scheduler.solver_choice import STAND_IN, refusal

log = structlog.get_logger()
Stopwatch = Callable[[], float]  # seconds
SMALLEST_SHARE = 0.25
NOBODY: Mapping[str, float] = {}


class Cards(Protocol):
    """See ces_scheduler.card_choice."""

    def narrowed(self, job: str, problem: Problem) -> Problem: ...

    def named(self, job: str, plan: Plan, cluster: Cluster) -> Plan | None: ...

    def explained(self, job: str, refused: Refusals) -> Refusals: ...

    def said(self, job: str, reason: Reason) -> Reason: ...


@dataclass(frozen=True, eq=False)
class Answer:
    """What the solver said of a problem. ``fallback``: why the solver asked for did not decide, if so.
    ``fragmentation_aware``: it counted what it leaves for later jobs. ``time_limit_s``: what it had. ``left_alone``:
    nodes that were kept from it, with the seconds until their owners are expected."""

    result: Result
    problem: Problem
    fallback: str | None
    fragmentation_aware: bool
    time_limit_s: float | None = None
    left_alone: Mapping[str, float] = field(default_factory=dict)


@dataclass
class SolverCalls:
    """The single-job solver as one cycle calls it, with all its answers and the time they took.

    ``seeds``: by job. ``time_limit_s``: for each answer. ``fallback``: why ``solver`` is not the one asked for.
    ``owners``: a job goes where none of them comes too soon, if there is such a place. ``cards``: what GPU cards can
    hold of a job."""

    solver: Solver
    seeds: Mapping[str, int]
    seconds: Stopwatch
    time_limit_s: float | None = None
    fallback: str | None = None
    owners: OwnerForecast = field(default_factory=OwnerForecast)
    cards: Cards | None = None
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    spent_ms: dict[str, float] = field(default_factory=dict)

    def __call__(self, job: WaitingJob, cluster: Cluster, barred: Mapping[str, float] = NOBODY) -> Result:
        """``barred``: nodes that the job must not use, with the seconds until their owners are expected."""
        return self._timed(job, cluster, barred, aware=False)

    def fragmentation_aware(self, job: WaitingJob, cluster: Cluster) -> Result:
        """The same, by the solver's variant that counts what it leaves for later jobs, if it has one."""
        return self._timed(job, cluster, NOBODY, aware=True)

    def answer_with(self, job: str, plan: Plan) -> Answer | None:
        """The answer that contains this very plan; None where an earlier cycle found it."""
        return next((answer for answer in self.answers.get(job, ()) if answer.result.plan is plan), None)

    def said(self, job: str, reason: Reason) -> Reason:
        """The reason, in terms of cards where it is about them."""
        return reason if self.cards is None else self.cards.said(job, reason)

    def explained(self, job: str, refused: Refusals) -> Refusals:
        """Why tasks go on no other node, in terms of cards where it is about them."""
        return refused if self.cards is None else self.cards.explained(job, refused)

    def _timed(self, job: WaitingJob, cluster: Cluster, barred: Mapping[str, float], *, aware: bool) -> Result:
        started = self.seconds()
        problem = job.on(cluster)
        problem = problem if self.cards is None else self.cards.narrowed(job.name, problem)
        answer = self._answer(job, problem, barred, aware=aware)
        if self.cards is not None and answer.result.plan is not None:
            answer = replace(answer, result=self._with_cards(self.cards, job, answer.result, cluster))
        self.spent_ms[job.name] = self.spent_ms.get(job.name, 0.0) + (self.seconds() - started) * 1000
        self.answers.setdefault(job.name, []).append(answer)
        return answer.result

    @staticmethod
    def _with_cards(cards: Cards, job: WaitingJob, result: Result, cluster: Cluster) -> Result:
        """The answer with the cards of its plan; without a plan where too few are free."""
        assert result.plan is not None
        plan = cards.named(job.name, result.plan, cluster)
        if plan is not None:
            return result if plan is result.plan else replace(result, plan=plan)
        reason = Reason("packing", proven=False, task=job.problem.tasks[0].name)
        return replace(result, plan=None, metrics=None, reason=reason)

    def _answer(self, job: WaitingJob, problem: Problem, barred: Mapping[str, float], *, aware: bool) -> Answer:
        """The first choice that has a place; each has its part of the time."""
        problem = without(problem, barred, strictly=True)
        choices = list(self.owners.choices(problem, job.expected_s))
        limit_s = None if self.time_limit_s is None else self.time_limit_s / (1 + len(choices))
        for narrowed, left_alone in choices:
            answer = self._ask(job.name, narrowed, limit_s, aware=aware)
            if answer.result.plan is not None:
                return replace(answer, left_alone={**barred, **left_alone})
        return replace(self._ask(job.name, problem, limit_s, aware=aware), left_alone=barred)

    def _ask(self, job: str, problem: Problem, limit_s: float | None, *, aware: bool) -> Answer:
        """A solver that fails on one job must not keep the others waiting."""
        solver, stand_in = (self._aware_solver, with_lookahead(STAND_IN)) if aware else (self.solver, STAND_IN)
        seed, fallback = self.seeds[job], self.fallback
        try:
            try:
                result = solver.solve(problem, seed=seed, time_limit_s=limit_s)
            except PolicyError as error:
                log.warning("a decision was made without the policy", job=job, reason=str(error))
                fallback = refusal(solver, error)
                result = stand_in.solve(problem, seed=seed, time_limit_s=limit_s)
            if result.plan is not None:
                Ledger(problem.cluster).hold(job, problem, result.plan)  # raises where the plan does not fit
        except Exception as error:
            log.exception("the solver failed", job=job, solver=solver.name)
            reason = Reason("solver-failed", proven=False, where=f"{solver.name}: {error}")
            result = Result(solver.name, SearchTrace.of(problem).considered, reason=reason)
        return Answer(result, problem, fallback, aware and solver is not self.solver, limit_s)

    @cached_property
    def _aware_solver(self) -> Solver:
        return with_lookahead(self.solver)


def share_of(time_limit_s: float | None, waiting: int) -> float | None:
    """Seconds of solver time for each of the waiting jobs: the more of them wait, the less each gets, down to
    ``SMALLEST_SHARE`` of the limit, with which plans are still better than those of simpler solvers."""
    return None if time_limit_s is None else time_limit_s * max(1 / max(waiting, 1), SMALLEST_SHARE)
