"""What a solver answers: a plan with its metrics, or the reason why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ces_core.model.reason import FormatQuantity, Reason, plain

if TYPE_CHECKING:
    from ces_core.model.cards import PlannedCard
    from ces_core.model.path import Path
    from ces_core.model.problem import Problem
    from ces_core.model.service import ServiceMetrics

REFUSALS = ("", "not-allowed", "cpu", "memory", "gpu", "bandwidth", "policy")
"""Why a node was refused for a task; the index is the code in :class:`Considered`. Empty: not refused. ``policy``: the
solver's own rule excluded it, such as a threshold."""
OPTIMAL = 1e-9
"""A plan whose objective is this close to its bound counts as optimal."""


@dataclass(frozen=True)
class PlannedFlow:
    """A flow's bandwidth and path; the path of a flow within one node is that node alone."""

    src: str
    dst: str
    bandwidth: float
    path: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        return {"src": self.src, "dst": self.dst, "bandwidth": self.bandwidth, "path": list(self.path)}


@dataclass(frozen=True)
class Plan:
    """The decision for one job: task -> node, flow -> bandwidth and path. Both in the order of the problem. ``cards``:
    those that its tasks get, chosen by the caller of a solver, where the cluster's are known."""

    assignments: Mapping[str, str]
    flows: tuple[PlannedFlow, ...]
    cards: tuple[PlannedCard, ...] = ()

    @staticmethod
    def of(problem: Problem, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]) -> Plan:
        """The plan given by indices."""
        nodes = problem.cluster.topology.nodes
        return Plan(
            assignments={task.name: nodes[n] for task, n in zip(problem.tasks, assignment, strict=True)},
            flows=tuple(
                PlannedFlow(flow.src, flow.dst, float(rate), tuple(nodes[n] for n in path.nodes))
                for flow, path, rate in zip(problem.flows, paths, bandwidth, strict=True)
            ),
        )


@dataclass(frozen=True)
class Metrics:
    """How good a plan is; see :mod:`ces_core.model.objective`. ``service``: of a job with goals."""

    load_imbalance: float
    bandwidth_satisfaction: float
    composite: float
    service: ServiceMetrics | None = None

    @property
    def objective(self) -> float:
        """What solvers maximise: the composite, or J of a job with goals."""
        return self.composite if self.service is None else self.service.objective

    def to_dict(self) -> dict[str, float]:
        metrics = {
            "load_imbalance": self.load_imbalance,
            "bandwidth_satisfaction": self.bandwidth_satisfaction,
            "composite": self.composite,
        }
        return metrics if self.service is None else metrics | self.service.to_dict()


@dataclass(frozen=True, eq=False)
class Considered:
    """Which nodes were refused for which task, and why, at the moment the task was placed (or given up)."""

    tasks: tuple[str, ...]
    nodes: tuple[str, ...]
    codes: NDArray[np.int8]  # (tasks, nodes), indices into REFUSALS

    def refused(self, task: str) -> dict[str, str]:
        """Refused node -> reason."""
        row = self.codes[self.tasks.index(task)]
        return {self.nodes[n]: REFUSALS[row[n]] for n in np.flatnonzero(row)}

    def counts(self, task: str) -> dict[str, int]:
        """Reason -> number of nodes."""
        return dict(Counter(self.refused(task).values()))

    def to_dict(self) -> dict[str, Any]:
        return {task: {"refused": self.refused(task), "counts": self.counts(task)} for task in self.tasks}


@dataclass(frozen=True)
class Advice:
    """A policy's part in a plan. ``probabilities``: task -> the probability the policy gave to its node when it was the
    task's turn; 0 if that node was impossible then."""

    version: str
    probabilities: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {"version": self.version, "probabilities": dict(self.probabilities)}


@dataclass(frozen=True, eq=False)
class Result:
    """A solver's answer: ``plan`` and ``metrics`` if the job has a place, else ``reason``.

    ``bound`` is a proven upper limit on the objective, None if unknown. ``advice``: from the policy behind the plan, if
    any.
    """

    solver: str
    considered: Considered
    plan: Plan | None = None
    metrics: Metrics | None = None
    reason: Reason | None = None
    bound: float | None = None
    advice: Advice | None = None

    @property
    def feasible(self) -> bool:
        """Whether the job has a place."""
        return self.plan is not None

    @property
    def optimal(self) -> bool:
        """Whether the plan is proven optimal: its objective is within ``OPTIMAL`` of the bound."""
        return self.metrics is not None and self.bound is not None and self.bound - self.metrics.objective <= OPTIMAL

    def to_dict(self, format_quantity: FormatQuantity = plain, *, paths: str = "hop-shortest") -> dict[str, Any]:
        """The answer as ``ces solve`` prints it. ``paths``: the problem's ``path_set``, for which the bound holds."""
        answer: dict[str, Any] = {"solver": self.solver, "feasible": self.feasible}
        if self.plan is not None and self.metrics is not None:
            answer["assignments"] = dict(self.plan.assignments)
            answer["flows"] = [flow.to_dict() for flow in self.plan.flows]
            answer["metrics"] = self.metrics.to_dict()
            if self.metrics.service is not None:
                answer["requests"] = [request.to_dict() for request in self.metrics.service.requests]
            if self.advice is not None:
                answer["policy"] = self.advice.to_dict()
        elif self.reason is not None:
            answer["reason"] = self.reason.text(format_quantity)
            answer["reason_detail"] = self.reason.to_dict()
        return answer | {"bound": self.bound, "paths": paths}
