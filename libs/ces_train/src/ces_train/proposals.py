"""Learns the weights of quick first plans (:mod:`ces_core.proposals`) by the cross-entropy method.

Rubinstein, "The cross-entropy method for combinatorial and continuous optimization" (1999): weights are drawn around a
mean, all of them play the same jobs, and mean and spread move to those of the best fifth. What counts is how much
better the first plan is than that of the dive of `search`, beside which it stands, so that a loss counts less; each
kind of job counts alike, whatever its spread.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ces_core.candidates import ALL, candidates
from ces_core.generate import random_instance
from ces_core.instance import read_instance
from ces_core.kernels.compact import Compact, compact
from ces_core.problem import Problem
from ces_core.proposals.dive import Diver
from ces_core.proposals.regions import rule_of
from ces_core.proposals.weights import PARTS, Weights
from ces_core.solvers.search import first_plan

FloatArray = NDArray[np.float64]
News = Callable[[int, FloatArray], None]
"""Hears of a generation and the gains of its mean, per kind of job."""

FILE = "proposals.json"
START: dict[str, dict[str, float]] = {
    "dive": {"imbalance": -1.0, "rate": -1.0},
    "centre": {"room": 1.0, "calm": 1.0, "near": 0.5},
    "member": {"room": 1.0, "calm": 1.0},
}
SPREAD = {"dive": 0.2, "centre": 0.5, "member": 0.5}
BEST = 0.2
"""Share of the draws that the next ones are drawn around."""
LEAST_SPREAD = 0.01
WORST = -0.2
"""A first plan that is missing or worse than this, beside that of `search`, counts as this."""
LOSS = 0.3
"""What a loss counts, beside a gain."""
PLANS = 2
"""So many first plans are made for each job; the best counts."""


@dataclass(frozen=True)
class Settings:
    """``kinds``: regime, nodes, tasks (None: 3 to 8) and number of jobs of each kind."""

    generations: int = 20
    draws: int = 36
    kinds: tuple[tuple[str, int, int | None, int], ...] = (
        ("thesis", 10, None, 30),
        ("tight", 10, None, 30),
        ("scarce", 10, None, 30),
        ("tight", 100, 16, 8),
        ("scarce", 100, 16, 8),
        ("thesis", 1000, 16, 8),
        ("tight", 1000, 16, 8),
        ("scarce", 1000, 16, 8),
    )
    train_from: int = 810_000
    """The first seed of the jobs that weights are learned on."""
    check_from: int = 960_000
    """And of those that the card's scores are from."""


@dataclass(frozen=True)
class Job:
    """``view`` is None where the candidates depend on the weights."""

    kind: int
    problem: Problem
    view: Compact | None
    mark: float  # what the first plan of `search` is worth


def jobs_of(settings: Settings, first_seed: int) -> list[Job]:
    """Those for which `search` has a first plan."""
    jobs = []
    for kind, (regime, nodes, tasks, count) in enumerate(settings.kinds):
        for number in range(count):
            seed = first_seed + 1000 * kind + number
            problem = read_instance(random_instance(regime, seed, nodes=nodes, tasks=tasks))
            if not problem.homes.any(axis=1).all():
                continue
            view = compact(problem, candidates(problem))
            mark = first_plan(view)
            if mark is not None:
                jobs.append(Job(kind, problem, view if nodes <= ALL else None, mark))
    return jobs


def gains(jobs: list[Job], weights: Weights, kinds: int, loss: float = LOSS) -> FloatArray:
    """Per kind, by how much first plans are better than those of `search` on average, losses counting for ``loss``."""
    found: list[list[float]] = [[] for _ in range(kinds)]
    rule = rule_of(weights)
    for job in jobs:
        view = job.view or compact(job.problem, candidates(job.problem, rule=rule))
        diver = Diver.of(job.problem, view, weights)
        best = max((diver.plan(skip) for skip in range(PLANS)), key=lambda score: -np.inf if score is None else score)
        gain = WORST if best is None else max(best - job.mark, WORST)
        found[job.kind].append(gain if gain > 0 else loss * gain)
    return np.array([np.mean(each) if each else 0.0 for each in found])


def learn(settings: Settings, seed: int, news: News) -> FloatArray:
    """The weights in a row; ``news`` hears the generation and the gains of its mean."""
    rng = np.random.default_rng(seed)
    jobs = jobs_of(settings, settings.train_from)
    mean = np.array([START[part].get(name, 0.0) for part, names in PARTS.items() for name in names])
    spread = np.array([SPREAD[part] for part, names in PARTS.items() for _ in names])
    for generation in range(settings.generations):
        draws = mean + spread * rng.standard_normal((settings.draws, len(mean)))
        draws[0] = mean
        gained = np.array([gains(jobs, Weights.of(draw, {}), len(settings.kinds)) for draw in draws])
        news(generation, gained[0])
        level = gained - gained.mean(axis=0)
        worth = (level / np.maximum(gained.std(axis=0), 1e-9)).mean(axis=1)
        best = draws[np.argsort(-worth, kind="stable")[: max(2, int(BEST * settings.draws))]]
        mean = 0.3 * mean + 0.7 * best.mean(axis=0)
        spread = 0.3 * spread + 0.7 * best.std(axis=0) + LEAST_SPREAD
    return mean


def train(settings: Settings, seed: int, out: Path, news: News) -> dict[str, Any]:
    """Learns, scores on other jobs, writes ``FILE`` to the folder ``out``. Returns the card."""
    found = learn(settings, seed, news)
    check = gains(jobs_of(settings, settings.check_from), Weights.of(found, {}), len(settings.kinds), 0.0)
    scores = {
        f"{regime}, {nodes} nodes": round(float(gain), 5)
        for (regime, nodes, *_), gain in zip(settings.kinds, check, strict=True)
    }
    card = {"settings": asdict(settings), "seed": seed, "gain beside the first dive": scores}
    out.mkdir(parents=True, exist_ok=True)
    (out / FILE).write_text(json.dumps(Weights.of(np.round(found, 4), card).to_dict(), indent=1) + "\n")
    return card
