"""``search`` for jobs with goals: plans are varied within the time limit, and the rates of the best ones are solved.

A plan that breaks no goal is better than any that does; among these, J decides. What the compiled part keeps is
improved by the linear program of :mod:`ces_core.bandwidth.goal_rates`, as far as time permits, since single rates that
are each the best beside the others need not be the best together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from ces_core.bandwidth.goal_rates import RateGoal, flow_values, goal_rates
from ces_core.model.objective import bandwidth_satisfaction, evaluate, load_imbalance
from ces_core.model.path import Path
from ces_core.model.plan import Plan, Result
from ces_core.model.problem import Problem
from ces_core.model.service import Service
from ces_core.network.cache import paths_for
from ces_core.placement.candidates import Rule
from ces_core.search.annealing import random_of
from ces_core.search.diagnosis import SearchTrace, obstacle
from ces_core.search.effort import Effort
from ces_core.search.goals.compiled.moves import improve
from ces_core.search.goals.compiled.state import FIRST_KEPT, LATE, GoalState, new_goal_state
from ces_core.search.goals.compiled.view import BALANCE, TIME, WATT, GoalView, goal_view
from ces_core.search.goals.domains import slow_task, without_goals
from ces_core.search.goals.reason import broken_goal, no_place, unreachable_goal

HEAT = 3e-3
"""How much worse than the plan it came from a variation may become at first, in J; it cools down to nothing."""
FIRST_TRIES = 10
"""Constructions that are made whatever the limit, until one is complete."""
DIAGNOSIS_S = 0.1
"""Time that is added where no plan was found."""
PROGRAM_S = 1e-4
"""Estimated time of the linear program for each flow."""
PROGRAMS = 0.3
"""Share of a time limit that is kept for linear programs, at most."""
CLOSE = 0.01
"""Kept plans that are worth this much less than the best are left as they are."""


def search_with_goals(
    name: str,
    problem: Problem,
    seed: int,
    deadline: float | None,
    rule: Rule,
    without: Callable[[Problem], Result],
) -> Result:
    """The answer of the solver ``name``; ``deadline`` is a time of ``time.perf_counter``. ``without`` answers a job
    without goals, to see whether their absence would help."""
    considered = SearchTrace.of(problem).considered
    hindrance = obstacle(without_goals(problem)) or slow_task(problem)
    if hindrance is not None:
        return Result(name, considered, reason=hindrance)
    service = Service(problem)
    goal = goal_view(problem, service, seed, rule)
    state = new_goal_state(goal, random_of(seed))
    if goal.fits.any(axis=1).all():
        _search(goal, state, deadline)
        if not _found(state) and deadline is not None:
            _search(goal, state, time.perf_counter() + DIAGNOSIS_S)
        _solve_rates(problem, service, goal, state, deadline)
    best = FIRST_KEPT + int(state.score[FIRST_KEPT:].argmax())
    if _found(state):
        plan = _plan_in(problem, goal, state, best)
        return Result(name, considered, Plan.of(problem, *plan), evaluate(problem, *plan))
    reason = unreachable_goal(problem, service)
    if reason is None and state.score[best] > -math.inf:
        reason = broken_goal(service, *_plan_in(problem, goal, state, best))
    if reason is None:
        reason = without(without_goals(problem)).reason
    return Result(name, considered, reason=reason or no_place(problem))


def _found(state: GoalState) -> bool:
    """Whether there is a plan that breaks no goal."""
    return bool(state.score[FIRST_KEPT:].max() > -LATE / 2)


def _search(goal: GoalView, state: GoalState, deadline: float | None) -> None:
    """Leaves the best plans in the slots from FIRST_KEPT on."""
    for _ in range(FIRST_TRIES):
        improve(goal, state, 0.0, 1)
        if state.score[FIRST_KEPT:].max() > -math.inf:
            break
    effort = Effort(deadline, time.perf_counter)
    whole = max(effort.left(), 1e-9)
    kept = 0.0 if deadline is None else min(PROGRAMS * whole, PROGRAM_S * len(goal.low))
    effort.spend(lambda limit: improve(goal, state, HEAT * max(effort.left(), 0.0) / whole, limit), until=kept)


def _solve_rates(problem: Problem, service: Service, goal: GoalView, state: GoalState, deadline: float | None) -> None:
    """Improves the rates of the kept plans that break no goal, the best first, while there is time."""
    most = float(state.score.max())
    for s in (np.argsort(-state.score[FIRST_KEPT:], kind="stable") + FIRST_KEPT).tolist():
        score = float(state.score[s])
        late = deadline is not None and time.perf_counter() + PROGRAM_S * len(goal.low) > deadline
        if score < max(most - CLOSE, -LATE / 2) or not problem.flows or late:
            return
        assignment, paths, bandwidth = _plan_in(problem, goal, state, s)
        try:
            found = goal_rates(service, assignment, paths, _rate_goal(service, goal, assignment, paths, bandwidth))
        except RuntimeError:  # the program's numbers are too far apart; the plan keeps its rates
            continue
        if found is not None:
            better = _worth(problem, service, assignment, paths, found.bandwidth)
            if better > score:
                state.rate[s], state.score[s] = found.bandwidth, better


def _worth(
    problem: Problem, service: Service, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]
) -> float:
    """J of a plan whose nodes and paths break no goal; minus infinity if its rates miss a hard deadline."""
    imbalance = load_imbalance(problem, assignment, paths, bandwidth)
    satisfaction = bandwidth_satisfaction(problem, paths, bandwidth)
    metrics = service.metrics(imbalance, satisfaction, assignment, paths, bandwidth)
    late = any(request.hard and request.missing_ms for request in metrics.requests)
    return -math.inf if late else metrics.objective


def _rate_goal(
    service: Service, goal: GoalView, assignment: Sequence[int], paths: Sequence[Path], bandwidth: Sequence[float]
) -> RateGoal:
    """What rates are to reach: J, where the soft deadlines that are met now stay so."""
    times, limits = {}, {}
    for request in service.requests(assignment, paths, bandwidth):
        if request.deadline_ms is not None and (request.hard or request.score > 0.0):
            limits[request.name] = request.deadline_ms
            if not request.hard and goal.aims[TIME] > 0.0:
                times[request.name] = float(goal.aims[TIME]) / request.deadline_ms
    value = flow_values(service, paths, service.goals.weights.bandwidth, float(goal.aims[WATT]))
    return RateGoal(value, float(goal.aims[BALANCE] * goal.weights[2]), times, limits)


def _plan_in(
    problem: Problem, goal: GoalView, state: GoalState, s: int
) -> tuple[list[int], tuple[Path, ...], list[float]]:
    """Nodes, paths and rates of a complete plan in a slot, by the cluster's indices."""
    routes, count = paths_for(problem), len(goal.nodes)
    paths = []
    for f, (q, origin) in enumerate(zip(state.path[s].tolist(), state.origin[s].tolist(), strict=True)):
        dst = int(goal.flow_dst[f])
        end = int(state.node_of[s, dst]) if dst >= 0 else -1 - dst
        between = routes.between(int(goal.nodes[origin]), int(goal.nodes[end]))
        paths.append(between[q - int(goal.pair_first[origin * count + end])])
    return goal.nodes[state.node_of[s]].tolist(), tuple(paths), state.rate[s].tolist()
