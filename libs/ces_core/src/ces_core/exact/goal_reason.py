"""Why a job with goals has no place: the goal that cannot be met even alone, or that not all of them can together."""

from __future__ import annotations

import time

from ces_core.exact.goal_tables import Aim, Reference, Tables
from ces_core.exact.goal_tree import GoalTree
from ces_core.model.problem import Problem
from ces_core.model.reason import Reason
from ces_core.model.service import ROUNDING, Service
from ces_core.search.goals.domains import all_paths, domains

REASON_S = 10.0
"""Maximum time for each question."""


def why_not(problem: Problem, *, complete: bool) -> Reason:
    """``complete``: it is proven that there is no plan."""
    return _Questions(problem, complete).reason()


class _Questions:
    """Asks for plans that meet one goal at a time, the others apart."""

    def __init__(self, problem: Problem, complete: bool) -> None:
        self.problem, self.complete = problem, complete
        self.goals = Service(problem).goals

    def reason(self) -> Reason:
        anywhere = self._best(self.problem, Aim(reliability=True))
        if anywhere.best is None:
            return Reason("placed-together", proven=anywhere.complete)
        if anywhere.complete and anywhere.best.value < self.goals.least_reliability * (1 - ROUNDING):
            return self._unreliable(anywhere.best.value)
        alone = [self._deadline(name, Aim(slowest=name)) for name in sorted(Aim.of(self.goals).deadlines)]
        found = next((reason for reason in alone if reason is not None), None) or self._beside()
        return found or Reason("goals-together", proven=self.complete)

    def _beside(self) -> Reason | None:
        """A deadline that cannot be met beside the other goals, which can."""
        every = Aim.of(self.goals)
        for name in sorted(every.deadlines):
            others = Aim(slowest=name, deadlines=every.deadlines - {name}, least_reliability=every.least_reliability)
            found = self._deadline(name, others)
            if found is not None:
                return found
        return None

    def _best(self, problem: Problem, aim: Aim) -> GoalTree:
        tables = Tables(Service(problem), aim, Reference.none(problem), all_paths(problem), domains(problem))
        tree = GoalTree(tables, time.perf_counter() + REASON_S)
        tree.run()
        return tree

    def _unreliable(self, works: float) -> Reason:
        """Whether others' use stands in the way is asked again of the empty cluster."""
        ever = self._best(self.problem.on_empty_cluster(), Aim(reliability=True))
        least = self.goals.least_reliability
        permanent = ever.complete and ever.best is not None and ever.best.value < least * (1 - ROUNDING)
        return Reason("reliability", permanent=permanent, needed=least, available=works)

    def _deadline(self, name: str, aim: Aim) -> Reason | None:
        """The reason why this request class is too late even at its fastest; None where it can be in time, or where
        nothing was found."""
        tree = self._best(self.problem, aim)
        if tree.best is None:
            return None
        plan = tree.best
        requests = Service(self.problem).requests(plan.assignment, plan.paths, plan.bandwidth)
        request = next(each for each in requests if each.name == name)
        if not request.missing_ms or request.deadline_ms is None:
            return None
        alone = not aim.deadlines and not aim.least_reliability
        permanent = alone and tree.complete and self._never(name, request.deadline_ms)
        where = request.text() + ("" if alone else ", if the other goals are met")
        return Reason(
            "deadline",
            permanent=permanent,
            proven=tree.complete,
            resource="ms",
            needed=request.time_ms,
            available=request.deadline_ms,
            where=where,
        )

    def _never(self, name: str, deadline_ms: float) -> bool:
        tree = self._best(self.problem.on_empty_cluster(), Aim(slowest=name))
        return tree.complete and (tree.best is None or -tree.best.value > deadline_ms * (1 + ROUNDING))
