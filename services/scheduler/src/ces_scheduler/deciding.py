"""Asking the solver, and what is said of its answer. Pure but for the solver's stopwatch, which is passed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import structlog

from ces_common.messages.events import FlowPlan, PolicyAdvice
from ces_common.messages.records import JobRecord
from ces_core.diagnosis import SearchTrace
from ces_core.errors import PolicyError
from ces_core.ledger import Ledger
from ces_core.limit import composite_limit
from ces_core.multi.jobs import WaitingJob
from ces_core.objective import metrics_of
from ces_core.plan import Advice, Plan, Result
from ces_core.problem import Cluster, Problem
from ces_core.reason import Reason as CoreReason
from ces_core.solvers import Solver
from ces_core.solvers.base import foreseeing
from ces_scheduler.choosing import STAND_IN, refusal
from ces_scheduler.translate import Cells, Offer, asked_by, cells_of_plan, explain_refusals, flow_plans

log = structlog.get_logger()
Stopwatch = Callable[[], float]  # seconds
Refusals = dict[str, dict[str, str]]  # task -> node -> why not
SMALLEST_SHARE = 0.25
KEPT_REFUSALS = 10_000
KEPT_PER_TASK = 20


@dataclass(frozen=True)
class Decision:
    """A place for a job. ``bound``: no plan has a higher composite. ``cells``: what it takes, in the offer's columns.
    ``fallback``: why no policy was followed though one was asked for; None where that is not so. ``sparing``: what is
    left for later jobs counted, so a lower composite than the bound is as it should be."""

    solver: str
    decision_ms: float
    seed: int
    time_limit_s: float | None
    assignments: dict[str, str]
    flows: list[FlowPlan]
    metrics: dict[str, float]
    bound: float | None
    refused: Refusals
    cells: Cells
    policy: PolicyAdvice | None = None
    fallback: str | None = None
    sparing: bool = False

    def considered(self) -> dict[str, Any]:
        """What is kept with the plan, beside its metrics: how it came about, and how good any plan could have been."""
        return {
            "decision_ms": round(self.decision_ms, 3),
            "time_limit_s": self.time_limit_s,
            "seed": self.seed,
            "bound": self.bound,
            "policy": self.policy.model_dump() if self.policy is not None else None,
            "fallback": self.fallback,
            "sparing": self.sparing,
            "refused": bounded(self.refused),
        }


def bounded(refused: Refusals) -> Refusals:
    """The refusals that are kept with a plan: all of them for most clusters, the first few per task for large ones."""
    if sum(len(nodes) for nodes in refused.values()) <= KEPT_REFUSALS:
        return refused
    return {task: dict(islice(nodes.items(), KEPT_PER_TASK)) for task, nodes in refused.items()}


@dataclass(frozen=True, eq=False)
class Answer:
    """What the solver said of a job on a cluster. ``sparing``: it counted what it leaves for later jobs."""

    result: Result
    cluster: Cluster
    fallback: str | None
    sparing: bool


@dataclass
class Asking:
    """The single-job solver, as a cycle asks it; remembers what it said. ``seeds``: by job. ``time_limit_s``: for each
    answer. ``fallback``: why ``solver`` is not the one that was asked for."""

    solver: Solver
    seeds: Mapping[str, int]
    seconds: Stopwatch
    time_limit_s: float | None = None
    fallback: str | None = None
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    spent_ms: dict[str, float] = field(default_factory=dict)

    def __call__(self, job: WaitingJob, cluster: Cluster) -> Result:
        return self._timed(job, cluster, sparing=False)

    def sparing(self, job: WaitingJob, cluster: Cluster) -> Result:
        """The same by the solver where it counts what it leaves for later jobs, if it can."""
        return self._timed(job, cluster, sparing=True)

    def _timed(self, job: WaitingJob, cluster: Cluster, *, sparing: bool) -> Result:
        started = self.seconds()
        answer = self._ask(job.name, job.on(cluster), sparing=sparing)
        self.spent_ms[job.name] = self.spent_ms.get(job.name, 0.0) + (self.seconds() - started) * 1000
        self.answers.setdefault(job.name, []).append(answer)
        return answer.result

    def answer_with(self, job: str, plan: Plan) -> Answer | None:
        """The answer that brought this very plan; None where it is older."""
        return next((answer for answer in self.answers.get(job, ()) if answer.result.plan is plan), None)

    def _ask(self, job: str, problem: Problem, *, sparing: bool) -> Answer:
        """A solver that fails on one job must not keep the others waiting."""
        solver, stand_in = (self._foreseeing, foreseeing(STAND_IN)) if sparing else (self.solver, STAND_IN)
        seed, fallback = self.seeds[job], self.fallback
        try:
            try:
                result = solver.solve(problem, seed=seed, time_limit_s=self.time_limit_s)
            except PolicyError as error:
                log.warning("a decision was made without the policy", job=job, reason=str(error))
                fallback = refusal(solver, error)
                result = stand_in.solve(problem, seed=seed, time_limit_s=self.time_limit_s)
            if result.plan is not None:
                Ledger(problem.cluster).hold(job, problem, result.plan)  # raises where the plan does not fit
        except Exception as error:
            log.exception("the solver failed", job=job, solver=solver.name)
            reason = CoreReason("solver-failed", proven=False, where=f"{solver.name}: {error}")
            result = Result(solver.name, SearchTrace.of(problem).considered, reason=reason)
        return Answer(result, problem.cluster, fallback, sparing and solver is not self.solver)

    @cached_property
    def _foreseeing(self) -> Solver:
        return foreseeing(self.solver)


def decision_of(record: JobRecord, job: WaitingJob, plan: Plan, offer: Offer, asking: Asking) -> Decision:
    """What is to be said of a plan for a job on what is offered. A solver that was shown a cluster on which room is
    kept, or that found the plan earlier, knows neither how good it is on all of it nor what any plan could reach."""
    problem, asked = job.on(offer.cluster), asked_by(record)
    answer = asking.answer_with(job.name, plan)
    flows = flow_plans(plan, record.flows)
    assignments = dict(plan.assignments)
    if answer is not None and np.array_equal(answer.cluster.node_used, offer.cluster.node_used):
        bound, metrics, considered = answer.result.bound, answer.result.metrics, answer.result.considered
    else:
        index = offer.cluster.topology.node_index
        bound = composite_limit(problem, [index[assignments[task.name]] for task in problem.tasks])
        metrics, considered = None, SearchTrace.of(problem).considered
    return Decision(
        solver=answer.result.solver if answer is not None else asking.solver.name,
        decision_ms=asking.spent_ms.get(job.name, 0.0),
        seed=asking.seeds[job.name],
        time_limit_s=asking.time_limit_s,
        assignments=assignments,
        flows=flows,
        metrics=(metrics or metrics_of(problem, plan)).to_dict(),
        bound=bound,
        refused=explain_refusals(asked, offer, considered),
        cells=cells_of_plan(asked, assignments, flows, offer.cluster.topology),
        policy=_kept(answer.result.advice) if answer is not None else None,
        fallback=answer.fallback if answer is not None else asking.fallback,
        sparing=answer is not None and answer.sparing,
    )


def _kept(advice: Advice | None) -> PolicyAdvice | None:
    if advice is None:
        return None
    rounded = {task: round(probability, 6) for task, probability in advice.probabilities.items()}
    return PolicyAdvice(version=advice.version, probabilities=rounded)


def share_of(time_limit_s: float | None, waiting: int) -> float | None:
    """Seconds for each of so many jobs that wait together: the more they are, the less the last bit of quality is worth
    the queue. But no less than ``SMALLEST_SHARE``, with which plans are still better than those of simpler solvers."""
    return None if time_limit_s is None else time_limit_s * max(1 / max(waiting, 1), SMALLEST_SHARE)
