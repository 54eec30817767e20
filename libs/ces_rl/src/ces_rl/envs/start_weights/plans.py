"""The first objective: quick plans that `search` begins with, and which nodes of a large cluster they look at.

Fitness is the composite of a start plan minus that of search's own greedy start. Losses are down-weighted, because
search keeps the better of the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.learned.start.greedy import GreedyConstruction
from ces_core.learned.start.regions import rule_of
from ces_core.learned.start.weights import PARTS, Weights
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import FloatArray, Problem
from ces_core.placement.candidates import ALL, candidates
from ces_core.placement.view import ProblemView, problem_view
from ces_core.search.solver import first_plan

Kinds = Sequence[tuple[str, int, int | None, int]]
"""Regime, nodes, tasks (None: 3 to 8) and number of jobs of each kind."""

START: dict[str, dict[str, float]] = {
    "dive": {"imbalance": -1.0, "rate": -1.0},
    "centre": {"room": 1.0, "calm": 1.0, "near": 0.5},
    "member": {"room": 1.0, "calm": 1.0},
}
SPREAD = {"dive": 0.2, "centre": 0.5, "member": 0.5}
LEAST_SPREAD = 0.01
WORST = -0.2
"""A start plan that is missing, or further than this below search's own, counts as this."""
LOSS = 0.3
"""Weight of a loss, where a gain has 1."""
PLANS = 2
"""Start plans that are made for each job; the best counts."""


@dataclass(frozen=True)
class Job:
    """``view`` is None where the candidates depend on the weights."""

    kind: int
    problem: Problem
    view: ProblemView | None
    reference: float  # composite of search's own greedy start


def start() -> FloatArray:
    """All numbers of start plans in a row, as learning begins."""
    return np.array([START[part].get(name, 0.0) for part in START for name in PARTS[part]])


def spread() -> FloatArray:
    return np.array([SPREAD[part] for part in START for _ in PARTS[part]])


def weights_of(row: FloatArray, remake: FloatArray) -> Weights:
    """From such a row, and the numbers of the second objective."""
    dive, centre, member = np.split(row, np.cumsum([len(PARTS[part]) for part in START])[:-1])
    return Weights(dive, centre, member, remake, {})


def drawn(kinds: Kinds, first_seed: int) -> Iterator[tuple[int, Problem]]:
    """The jobs of each kind, with its number, seeds from ``first_seed`` on."""
    for kind, (regime, nodes, tasks, count) in enumerate(kinds):
        for seed in range(first_seed + 1000 * kind, first_seed + 1000 * kind + count):
            yield kind, read_instance(random_instance(regime, seed, nodes=nodes, tasks=tasks))


def jobs_of(kinds: Kinds, first_seed: int) -> list[Job]:
    """The drawn jobs that search has a greedy start for."""
    jobs = []
    for kind, problem in drawn(kinds, first_seed):
        if not problem.homes.any(axis=1).all():
            continue
        view = problem_view(problem, candidates(problem))
        reference = first_plan(view)
        if reference is not None:
            jobs.append(Job(kind, problem, view if kinds[kind][1] <= ALL else None, reference))
    return jobs


def gains(jobs: list[Job], weights: Weights, kinds: int, loss: float = LOSS) -> FloatArray:
    """(kinds,) mean gain over search's own start, losses counting for ``loss``."""
    found: list[list[float]] = [[] for _ in range(kinds)]
    rule = rule_of(weights)
    for job in jobs:
        view = job.view or problem_view(job.problem, candidates(job.problem, rule=rule))
        construction = GreedyConstruction.of(job.problem, view, weights)
        best = max(
            (construction.plan(skip) for skip in range(PLANS)), key=lambda score: -np.inf if score is None else score
        )
        gain = WORST if best is None else max(best - job.reference, WORST)
        found[job.kind].append(gain if gain > 0 else loss * gain)
    return np.array([np.mean(each) if each else 0.0 for each in found])
