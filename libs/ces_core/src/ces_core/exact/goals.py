"""``exact`` for jobs with goals: the best plan with a proof, or why there is none.

The bound needs a plan to be tight at (:class:`ces_core.exact.goal_tables.Reference`), so the tree is begun three times:
for any plan, for a few better ones, and from the best of these for the proof.
"""

from __future__ import annotations

import numpy as np

from ces_core.exact.goal_leaves import GoalPlan
from ces_core.exact.goal_reason import why_not
from ces_core.exact.goal_tables import Aim, Reference, Tables
from ces_core.exact.goal_tree import GoalTree
from ces_core.model.errors import ProblemError
from ces_core.model.objective import evaluate
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import BoolArray, Problem
from ces_core.model.service import Service
from ces_core.search.diagnosis import SearchTrace, obstacle
from ces_core.search.goals.domains import all_paths, domains, places, slow_task, without_goals

FEW = 12
"""Plans after which the tree is begun once more, with a bound that is tight at the best of them."""
LARGEST = 400_000
"""Maximum number of pairs of nodes that flows could lead between; beyond it the tables take minutes to make."""


def solve_with_goals(name: str, problem: Problem, deadline: float) -> Result:
    """The answer of the solver ``name``; ``deadline`` is a time of ``time.perf_counter``. Raises ProblemError for a
    problem that is too large."""
    considered = SearchTrace.of(problem).considered
    hindrance = obstacle(without_goals(problem)) or slow_task(problem)
    if hindrance is not None:
        return Result(name, considered, reason=hindrance)
    domain = domains(problem)
    _within_reach(problem, domain)
    service, routes = Service(problem), all_paths(problem)
    aim = Aim.of(service.goals)
    best: GoalPlan | None = None
    bounds: list[float] = []
    for most_plans in (1, FEW, np.inf):
        reference = Reference.none(problem)
        if best is not None:
            reference = Reference.at(problem, best.assignment, best.paths, best.bandwidth)
        tree = GoalTree(Tables(service, aim, reference, routes, domain), deadline, most_plans)
        tree.run(best)
        best = tree.best
        bounds.append(tree.bound)
        if tree.complete:
            break
    if best is None:
        return Result(name, considered, reason=why_not(problem, complete=tree.complete))
    metrics = evaluate(problem, best.assignment, best.paths, best.bandwidth)
    proven = not problem.flows or not routes.truncated(places(problem))
    bound = max(min(bounds), metrics.objective) if proven else None
    return Result(name, considered, Plan.of(problem, best.assignment, best.paths, best.bandwidth), metrics, bound=bound)


def _within_reach(problem: Problem, domain: BoolArray) -> None:
    pairs = len(places(problem))
    for src, dst in zip(problem.flow_src.tolist(), problem.flow_dst.tolist(), strict=True):
        pairs += int(domain[src].sum() if src >= 0 else 1) * int(domain[dst].sum() if dst >= 0 else 1)
    if pairs > LARGEST:
        remedy = "name the nodes that its tasks may use (`allowed`), or ask another solver"
        raise ProblemError("job", f"exact cannot weigh {pairs} pairs of nodes of a job with goals: {remedy}")
