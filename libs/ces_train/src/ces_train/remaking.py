"""Learns how tasks are best placed anew (:mod:`ces_core.proposals.remake`) by the cross-entropy method.

All draws begin with the first plan of `search`, and what counts is how much better it has become after the same work,
beside the other draws: each job counts alike, since in some there is a hundred times as much to gain as in others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ces_core.candidates import Rule, candidates
from ces_core.generate import random_instance
from ces_core.instance import read_instance
from ces_core.kernels.compact import Compact, compact
from ces_core.proposals.remake import BREADTH, remake
from ces_core.proposals.weights import HABITS
from ces_core.solvers.search import begun
from ces_train.cross_entropy import News, learned

FloatArray = NDArray[np.float64]
Kinds = Sequence[tuple[str, int, int | None, int]]
"""Regime, nodes, tasks and number of jobs of each kind."""

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
"""Nodes that tasks are drawn among, and as how many of them placing a task counts beside: about 1.3 ms at 100 nodes."""


def begun_with() -> FloatArray:
    """What learning begins with."""
    return np.array([START.get(name, 0.0) for name in HABITS])


def learn(
    kinds: Kinds, first_seed: int, rule: Rule, *, generations: int, draws: int, seed: int, news: News
) -> FloatArray:
    """The weights, learned on jobs from ``first_seed`` on; ``rule``: which nodes of a large cluster are looked at."""
    jobs = jobs_of(kinds, first_seed, rule)
    spread = np.array([SPREAD[name] for name in HABITS])
    return learned(
        begun_with(),
        spread,
        LEAST_SPREAD * spread,
        lambda draw: np.concatenate(gains(jobs, draw)),
        generations=generations,
        draws=draws,
        seed=seed,
        news=news,
    )


def jobs_of(kinds: Kinds, first_seed: int, rule: Rule) -> list[list[Compact]]:
    """Of each kind those for which `search` has a first plan."""
    jobs: list[list[Compact]] = []
    for kind, (regime, nodes, tasks, count) in enumerate(kinds):
        jobs.append([])
        for number in range(count):
            seed = first_seed + 1000 * kind + number
            problem = read_instance(random_instance(regime, seed, nodes=nodes, tasks=tasks))
            view = compact(problem, candidates(problem, rule=rule))
            if view.fits.any(axis=1).all() and begun(view).state.fits[0]:
                jobs[-1].append(view)
    return jobs


def gains(jobs: list[list[Compact]], weights: FloatArray) -> list[FloatArray]:
    """Per kind and job, by how much the plan becomes better."""
    most = int(WORK / (PLACING + max(weights[BREADTH], 1.0)))
    return [np.array([_gain(view, weights, most) for view in views]) for views in jobs]


def mean_gains(jobs: list[list[Compact]], weights: FloatArray) -> FloatArray:
    return np.array([gained.mean() if len(gained) else 0.0 for gained in gains(jobs, weights)])


def _gain(view: Compact, weights: FloatArray, most: int) -> float:
    bench = begun(view)
    first = float(bench.state.score[0])
    remake(bench.desk, weights, most)
    return float(bench.walk.best_score[0]) - first
