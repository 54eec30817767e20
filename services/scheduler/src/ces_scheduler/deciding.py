"""Which waiting jobs to try, and what to say of each. Pure but for the solver's stopwatch, which is passed in."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ces_common.jobfile import Flow, Task
from ces_common.messages.events import FlowPlan, Reason
from ces_common.messages.records import JobRecord
from ces_common.states import JobState
from ces_core.errors import ProblemError
from ces_core.plan import Result
from ces_core.solvers import Solver
from ces_scheduler.translate import (
    Offer,
    Usage,
    explain_refusals,
    flow_plans,
    problem_of,
    reason_of,
    usage_of,
)

Stopwatch = Callable[[], float]  # seconds
NO_NODES = Reason(code="no-nodes", text="no node has joined the cluster yet", forever=True)


@dataclass(frozen=True)
class Decision:
    """A place for a job, or the reason why there is none."""

    solver: str
    decision_ms: float
    assignments: dict[str, str] = field(default_factory=dict)
    flows: list[FlowPlan] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    reason: Reason | None = None
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    usage: Usage | None = None


def decide(
    name: str, tasks: list[Task], flows: list[Flow], offer: Offer | None, solver: Solver, seconds: Stopwatch, seed: int
) -> Decision:
    """Where a job would go on what is offered."""
    if offer is None:
        return Decision(solver=solver.name, decision_ms=0.0, reason=NO_NODES)
    started = seconds()
    try:
        problem = problem_of(name, tasks, flows, offer)
    except ProblemError as error:  # no reason to keep the other jobs waiting
        reason = Reason(code="impossible", text=f"the job makes no sense: {error}", forever=True)
        return Decision(solver=solver.name, decision_ms=0.0, reason=reason)
    result: Result = solver.solve(problem, seed=seed)
    spent_ms = (seconds() - started) * 1000
    refused = explain_refusals(tasks, offer, result)
    if result.plan is None or result.metrics is None:
        reason = reason_of(result.reason) if result.reason else Reason(code="unknown", text="no place was found")
        return Decision(solver=result.solver, decision_ms=spent_ms, reason=reason, refused=refused)
    plans = flow_plans(result.plan, flows)
    assignments = dict(result.plan.assignments)
    return Decision(
        solver=result.solver,
        decision_ms=spent_ms,
        assignments=assignments,
        flows=plans,
        metrics=result.metrics.to_dict(),
        refused=refused,
        usage=usage_of(problem, assignments, plans),
    )


def queue_order(jobs: Collection[JobRecord]) -> list[JobRecord]:
    """Queued jobs, the most urgent first; among equals, first come, first served."""
    queued = [job for job in jobs if job.state is JobState.QUEUED and not job.allocations]
    return sorted(queued, key=lambda job: (-job.priority, job.submitted_at, job.id))
