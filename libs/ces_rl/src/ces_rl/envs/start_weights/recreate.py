"""The second objective: how tasks are taken off and placed again (:mod:`ces_core.learned.start.ruin_and_recreate`,
ruin and recreate).

All candidates begin with the first plan of `search` and do the same work. Fitness is the gain in composite, by job:
each counts alike, since some have a hundred times as much to gain as others.
"""

from __future__ import annotations

import numpy as np

from ces_core.learned.start.nearness import NOWHERE
from ces_core.learned.start.ruin_and_recreate import BREADTH, ruin_and_recreate
from ces_core.learned.start.weights import HABITS
from ces_core.model.problem import FloatArray
from ces_core.placement.candidates import Rule, candidates
from ces_core.placement.view import ProblemView, problem_view
from ces_core.search.solver import with_start_plan
from ces_rl.envs.start_weights.plans import Kinds, drawn

START = {"noise": 1.0, "heat": 0.5, "breadth": 12.0, "more": 0.5, "neighbour": 0.5}
"""Nothing but the nodes' balance counts."""
SPREAD = {
    "links": 0.5,
    "lost": 0.5,
    "hops": 0.1,
    "open": 0.3,
    "noise": 0.4,
    "heat": 0.25,
    "breadth": 4.0,
    "more": 0.2,
    "neighbour": 0.25,
}
LEAST_SPREAD = 0.05
"""As a share of these."""
WORK, PLACING = 8_000, 20
"""Nodes that tasks are drawn among, and how many of them placing a task counts for: about 1.3 ms at 100 nodes."""


def start() -> FloatArray:
    """The numbers that learning begins with."""
    return np.array([START.get(name, 0.0) for name in HABITS])


def spread() -> FloatArray:
    return np.array([SPREAD[name] for name in HABITS])


def jobs_of(kinds: Kinds, first_seed: int, rule: Rule) -> list[list[ProblemView]]:
    """By kind, the jobs that search has a first plan for. ``rule``: which nodes of a large cluster are looked at."""
    jobs: list[list[ProblemView]] = [[] for _ in kinds]
    for kind, problem in drawn(kinds, first_seed):
        view = problem_view(problem, candidates(problem, rule=rule))
        if view.fits.any(axis=1).all() and with_start_plan(view).state.fits[0]:
            jobs[kind].append(view)
    return jobs


def gains(jobs: list[list[ProblemView]], weights: FloatArray) -> list[FloatArray]:
    """By kind and job, the gain in composite."""
    most = int(WORK / (PLACING + max(weights[BREADTH], 1.0)))
    return [np.array([_gain(view, weights, most) for view in views]) for views in jobs]


def mean_gains(jobs: list[list[ProblemView]], weights: FloatArray) -> FloatArray:
    return np.array([gained.mean() if len(gained) else 0.0 for gained in gains(jobs, weights)])


def _gain(view: ProblemView, weights: FloatArray, most: int) -> float:
    bench = with_start_plan(view)
    first = float(bench.state.score[0])
    ruin_and_recreate(bench.workspace, weights, NOWHERE, most)
    return float(bench.walk.best_score[0]) - first
