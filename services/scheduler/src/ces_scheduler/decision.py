"""The decision for one job that starts, with everything that is kept about how it came about. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from ces_common.jobfile import Task
from ces_common.messages.plans import FlowPlan, PolicyAdvice
from ces_common.messages.records import JobRecord
from ces_common.messages.request_times import RequestTime
from ces_core.bandwidth.bounds import composite_limit
from ces_core.model.objective import metrics_of
from ces_core.model.plan import Advice, Considered, Plan
from ces_core.model.problem import Problem
from ces_core.queue.jobs import WaitingJob
from ces_core.search.diagnosis import SearchTrace
from ces_scheduler.application_goals import request_times
from ces_scheduler.job_problem import Lacking, Refusals, asked_by, explain_refusals, flow_plans, lacks
from ces_scheduler.offer import Cells, Offer, cells_of_plan
from ces_scheduler.owner_forecast import expected_text
from ces_scheduler.solver_calls import SolverCalls

KEPT_REFUSALS = 10_000
KEPT_PER_TASK = 20
KEPT_LACKING = 200
"""Nodes of which it is kept with a plan how much they have too little."""


@dataclass(frozen=True)
class Decision:
    """A place for a job. ``bound``: no plan has a higher composite. ``cells``: what it takes, in the offer's columns.
    ``fallback``: why no policy was followed though one was asked for; None otherwise. ``fragmentation_aware``: what
    is left for later jobs counted, so a composite below the bound is intended. ``cards``: task -> its cards.
    ``requests``: how long those of an application take. ``problem``: what the solver was asked."""

    solver: str
    decision_ms: float
    seed: int
    time_limit_s: float | None
    assignments: dict[str, str]
    flows: list[FlowPlan]
    metrics: dict[str, float]
    bound: float | None
    refused: Refusals
    lacking: Lacking
    cells: Cells
    problem: Problem = field(compare=False, repr=False)
    policy: PolicyAdvice | None = None
    fallback: str | None = None
    fragmentation_aware: bool = False
    cards: dict[str, list[str]] = field(default_factory=dict)
    requests: list[RequestTime] = field(default_factory=list)

    def considered(self) -> dict[str, Any]:
        """What is kept with the plan beside its metrics: how it came about, and how good any plan could have been."""
        return {
            "decision_ms": round(self.decision_ms, 3),
            "time_limit_s": self.time_limit_s,
            "seed": self.seed,
            "bound": self.bound,
            "policy": self.policy.model_dump() if self.policy is not None else None,
            "fallback": self.fallback,
            "sparing": self.fragmentation_aware,  # the key under which plans have kept it from the start
            "refused": bounded(self.refused),
            "lacking": {
                task: {node: [dict(each) for each in short] for node, short in nodes.items()}
                for task, nodes in self.lacking.items()
            },
        } | ({"requests": [each.model_dump() for each in self.requests]} if self.requests else {})


def bounded(refused: Refusals) -> Refusals:
    """The refusals that are kept with a plan: all of them for most clusters, the first few per task for large ones."""
    if sum(len(nodes) for nodes in refused.values()) <= KEPT_REFUSALS:
        return refused
    return {task: dict(islice(nodes.items(), KEPT_PER_TASK)) for task, nodes in refused.items()}


def decision_of(record: JobRecord, job: WaitingJob, plan: Plan, offer: Offer, calls: SolverCalls) -> Decision:
    """The decision that a plan for a job on what is offered stands for.

    Metrics and bound are the solver's where it saw just this offer. A solver that saw a cluster with reservations or
    without some nodes, or found the plan in an earlier cycle, knows neither, so they are computed again."""
    problem, asked = job.on(offer.cluster), asked_by(record)
    answer = calls.answer_with(job.name, plan)
    flows = flow_plans(plan, record.flows)
    assignments = dict(plan.assignments)
    if (
        answer is not None
        and not answer.left_alone
        and np.array_equal(answer.problem.cluster.node_used, offer.cluster.node_used)
    ):
        bound, metrics, considered = answer.result.bound, answer.result.metrics, answer.result.considered
    else:
        index = offer.cluster.topology.node_index
        places = [index[assignments[task.name]] for task in problem.tasks]
        bound = None if problem.has_goals else composite_limit(problem, places)
        metrics, considered = None, SearchTrace.of(problem).considered
    refused = _refused(asked, offer, considered, assignments, {} if answer is None else answer.left_alone)
    refused = calls.explained(job.name, refused)
    metrics = metrics or metrics_of(problem, plan)
    cards: dict[str, list[str]] = {}
    for each in plan.cards:
        cards.setdefault(each.task, []).append(each.card)
    return Decision(
        solver=answer.result.solver if answer is not None else calls.solver.name,
        decision_ms=calls.spent_ms.get(job.name, 0.0),
        seed=calls.seeds[job.name],
        time_limit_s=calls.time_limit_s if answer is None else answer.time_limit_s,
        assignments=assignments,
        flows=flows,
        metrics=metrics.to_dict(),
        bound=bound,
        refused=refused,
        lacking=lacks(asked, offer, refused, KEPT_LACKING),
        cells=cells_of_plan(asked, assignments, flows, offer.cluster.topology),
        problem=problem if answer is None else answer.problem,
        policy=_advice_of(answer.result.advice) if answer is not None else None,
        fallback=answer.fallback if answer is not None else calls.fallback,
        fragmentation_aware=answer is not None and answer.fragmentation_aware,
        cards=cards,
        requests=request_times(record, () if metrics.service is None else metrics.service.requests),
    )


def _refused(
    tasks: Sequence[Task],
    offer: Offer,
    considered: Considered,
    assignments: Mapping[str, str],
    left_alone: Mapping[str, float],
) -> Refusals:
    """With the nodes that were left alone for their owners' sake, but for the one where a task is all the same."""
    refused = explain_refusals(tasks, offer, considered)
    if not left_alone:
        return refused
    said = {node: expected_text(seconds) for node, seconds in left_alone.items()}
    found = {}
    for task in tasks:
        elsewhere = {node: text for node, text in said.items() if node != assignments[task.name]}
        found[task.name] = elsewhere | refused.get(task.name, {})
    return found


def _advice_of(advice: Advice | None) -> PolicyAdvice | None:
    if advice is None:
        return None
    rounded = {task: round(probability, 6) for task, probability in advice.probabilities.items()}
    return PolicyAdvice(version=advice.version, probabilities=rounded)
