"""Which waiting jobs to try, and what to say of each. Pure but for the solver's stopwatch, which is passed in."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ces_common.jobfile import Flow, Task
from ces_common.messages.events import FlowPlan, PolicyAdvice, Reason
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.errors import PolicyError, ProblemError
from ces_core.plan import Advice, Result
from ces_core.solvers import Solver
from ces_scheduler.choosing import STAND_IN, refusal
from ces_scheduler.translate import (
    Offer,
    Usage,
    explain_refusals,
    flow_plans,
    lacking_data,
    problem_of,
    reason_of,
    usage_of,
)

Stopwatch = Callable[[], float]  # seconds
Refusals = dict[str, dict[str, str]]  # task -> node -> why not
SMALLEST_SHARE = 0.25
KEPT_REFUSALS = 10_000
KEPT_PER_TASK = 20
NO_NODES = Reason(code="no-nodes", text="no node has joined the cluster yet", forever=True)


@dataclass(frozen=True)
class Decision:
    """A place for a job, or the reason why there is none. ``fallback``: why no policy was followed though one was asked
    for; None where that is not so."""

    solver: str
    decision_ms: float
    seed: int
    time_limit_s: float | None = None
    assignments: dict[str, str] = field(default_factory=dict)
    flows: list[FlowPlan] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    bound: float | None = None  # no plan has a higher composite
    reason: Reason | None = None
    refused: Refusals = field(default_factory=dict)
    usage: Usage | None = None
    policy: PolicyAdvice | None = None
    fallback: str | None = None

    def considered(self) -> dict[str, Any]:
        """What is kept with the plan, beside its metrics: how it came about, and how good any plan could have been."""
        return {
            "decision_ms": round(self.decision_ms, 3),
            "time_limit_s": self.time_limit_s,
            "seed": self.seed,
            "bound": self.bound,
            "policy": self.policy.model_dump() if self.policy is not None else None,
            "fallback": self.fallback,
            "refused": bounded(self.refused),
        }


def bounded(refused: Refusals) -> Refusals:
    """The refusals that are kept with a plan: all of them for most clusters, the first few per task for large ones."""
    if sum(len(nodes) for nodes in refused.values()) <= KEPT_REFUSALS:
        return refused
    return {task: dict(islice(nodes.items(), KEPT_PER_TASK)) for task, nodes in refused.items()}


def decide(
    name: str,
    tasks: list[Task],
    flows: list[Flow],
    offer: Offer | None,
    solver: Solver,
    seconds: Stopwatch,
    *,
    seed: int,
    time_limit_s: float | None = None,
    fallback: str | None = None,
    paths: int | None = None,
) -> Decision:
    """Where a job would go on what is offered. ``fallback``: why ``solver`` is not the one that was asked for;
    ``paths``: see problem_of."""
    if offer is None:
        return Decision(solver.name, 0.0, seed, time_limit_s, reason=NO_NODES, fallback=fallback)
    lacking = lacking_data(flows, offer)
    if lacking is not None:
        return Decision(solver.name, 0.0, seed, time_limit_s, reason=lacking, fallback=fallback)
    started = seconds()
    try:
        problem = problem_of(name, tasks, flows, offer, paths)
    except ProblemError as error:  # no reason to keep the other jobs waiting
        reason = Reason(code="impossible", text=f"the job makes no sense: {error}", forever=True)
        return Decision(solver.name, 0.0, seed, time_limit_s, reason=reason, fallback=fallback)
    try:
        result: Result = solver.solve(problem, seed=seed, time_limit_s=time_limit_s)
    except PolicyError as error:
        fallback = refusal(solver, error)
        result = STAND_IN.solve(problem, seed=seed, time_limit_s=time_limit_s)
    spent_ms = (seconds() - started) * 1000
    refused = explain_refusals(tasks, offer, result)
    if result.plan is None or result.metrics is None:
        reason = reason_of(result.reason) if result.reason else Reason(code="unknown", text="no place was found")
        return Decision(result.solver, spent_ms, seed, time_limit_s, reason=reason, refused=refused, fallback=fallback)
    plans = flow_plans(result.plan, flows)
    assignments = dict(result.plan.assignments)
    return Decision(
        result.solver,
        spent_ms,
        seed,
        time_limit_s,
        assignments=assignments,
        flows=plans,
        metrics=result.metrics.to_dict(),
        bound=result.bound,
        refused=refused,
        usage=usage_of(problem, assignments, plans),
        policy=_kept(result.advice),
        fallback=fallback,
    )


def _kept(advice: Advice | None) -> PolicyAdvice | None:
    if advice is None:
        return None
    rounded = {task: round(probability, 6) for task, probability in advice.probabilities.items()}
    return PolicyAdvice(version=advice.version, probabilities=rounded)


def queue_order(jobs: Collection[JobRecord]) -> list[JobRecord]:
    """Queued jobs, the most urgent first; among equals, first come, first served."""
    queued = [job for job in jobs if job.state is JobState.QUEUED and not job.allocations]
    return sorted(queued, key=lambda job: (-job.priority, job.submitted_at, job.id))


def share_of(time_limit_s: float | None, waiting: int) -> float | None:
    """Seconds for each of so many jobs that wait together: the more they are, the less the last bit of quality is worth
    the queue. But no less than ``SMALLEST_SHARE``, with which plans are still better than those of simpler solvers."""
    return None if time_limit_s is None else time_limit_s * max(1 / max(waiting, 1), SMALLEST_SHARE)
