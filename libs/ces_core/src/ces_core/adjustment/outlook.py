"""What may come while a gain lasts, and what assignments are worth then: a place that serves many of the conditions
that are likely needs fewer moves than the best one for now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ces_core.adjustment.valuation import Valuation
from ces_core.exact.goal_tables import Reference
from ces_core.model.errors import ProblemError
from ces_core.model.problem import FloatArray, Problem
from ces_core.model.topology import IntArray
from ces_core.search.goals.domains import all_paths, domains


@dataclass(frozen=True)
class Ahead:
    """``valuation``: of the job in conditions that may come; ``weight``: seconds for which they are expected, for each
    second for which the present ones are."""

    valuation: Valuation
    weight: float


@dataclass(frozen=True)
class Outlook:
    """Empty: nothing is foreseen, and the present conditions stay."""

    ahead: tuple[Ahead, ...] = ()

    def worth(self, rows: IntArray) -> FloatArray:
        """(M,): of the assignments ``rows``, (M, T), in what may come, in units of the objective over the time of the
        present conditions. Paths and rates are set anew then; where these mend nothing, an assignment is worth 0. A
        bound stands for the best of them."""
        total = np.zeros(len(rows))
        for each in self.ahead:
            total += each.weight * np.maximum(0.0, each.valuation.bounds(rows))
        return total


def foreseen(problem: Problem) -> Valuation:
    """Of a job in conditions that may come: any assignment, any paths and rates."""
    return Valuation(problem, all_paths(problem), domains(problem), Reference.none(problem))


def check_outlook(problem: Problem, outlook: Outlook) -> None:
    """Raises ProblemError where what may come is not about the same nodes and tasks."""
    for each in outlook.ahead:
        other = each.valuation.problem
        same_nodes = other.cluster.topology.nodes == problem.cluster.topology.nodes
        if not same_nodes or [task.name for task in other.tasks] != [task.name for task in problem.tasks]:
            raise ProblemError("outlook", "is about other nodes or tasks")
        if not 0 <= each.weight < float("inf"):
            raise ProblemError("outlook", f"weighs conditions {each.weight:g}: 0 or more it must be")
