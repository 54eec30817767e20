"""Learns the weights of :mod:`ces_core.proposals` by the cross-entropy method: of quick first plans, then of remaking.

For first plans counts how much better they are than that of the dive of `search`, beside which they stand, so that a
loss counts less.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
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
from ces_train import remaking
from ces_train.cross_entropy import News, learned

FloatArray = NDArray[np.float64]

FILE = "proposals.json"
START: dict[str, dict[str, float]] = {
    "dive": {"imbalance": -1.0, "rate": -1.0},
    "centre": {"room": 1.0, "calm": 1.0, "near": 0.5},
    "member": {"room": 1.0, "calm": 1.0},
}
SPREAD = {"dive": 0.2, "centre": 0.5, "member": 0.5}
LEAST_SPREAD = 0.01
WORST = -0.2
"""A first plan that is missing or worse than this, beside that of `search`, counts as this."""
LOSS = 0.3
"""What a loss counts, beside a gain."""
PLANS = 2
"""So many first plans are made for each job; the best counts."""


@dataclass(frozen=True)
class Settings:
    """``kinds``: regime, nodes, tasks (None: 3 to 8) and number of jobs of each kind, for first plans and for
    remaking."""

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
    remade_kinds: tuple[tuple[str, int, int | None, int], ...] = (
        ("thesis", 100, 16, 24),
        ("tight", 100, 16, 24),
        ("scarce", 100, 16, 24),
        ("tight", 30, 16, 8),
        ("scarce", 30, 16, 8),
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


def learn(settings: Settings, seed: int, news: News) -> Weights:
    """The weights of first plans; the others are where their learning begins."""
    jobs = jobs_of(settings, settings.train_from)
    found = learned(
        np.array([START[part].get(name, 0.0) for part in START for name in PARTS[part]]),
        np.array([SPREAD[part] for part in START for _ in PARTS[part]]),
        np.full(sum(len(PARTS[part]) for part in START), LEAST_SPREAD),
        lambda draw: gains(jobs, _weights(draw), len(settings.kinds)),
        generations=settings.generations,
        draws=settings.draws,
        seed=seed,
        news=news,
    )
    return _weights(found)


def _weights(row: FloatArray) -> Weights:
    """From all numbers of first plans in a row."""
    dive, centre, member = np.split(row, np.cumsum([len(PARTS[part]) for part in START])[:-1])
    return Weights(dive, centre, member, remaking.begun_with(), {})


def train(settings: Settings, seed: int, out: Path, news: News) -> dict[str, Any]:
    """Learns, scores on other jobs, writes ``FILE`` to the folder ``out``. Returns the card. ``news`` hears of the
    generations of first plans, then of as many of remaking."""
    found = learn(settings, seed, news)
    check = gains(jobs_of(settings, settings.check_from), found, len(settings.kinds), 0.0)
    rule, kinds = rule_of(found), settings.remade_kinds
    remade = remaking.learn(
        kinds,
        settings.train_from,
        rule,
        generations=settings.generations,
        draws=settings.draws,
        seed=seed,
        news=lambda generation, gained: news(settings.generations + generation, gained),
    )
    jobs = remaking.jobs_of(kinds, settings.check_from, rule)
    card = {
        "settings": asdict(settings),
        "seed": seed,
        "gain beside the first dive": _named(settings.kinds, check),
        "gain of remaking it": _named(kinds, remaking.mean_gains(jobs, remade)),
        "before learning": _named(kinds, remaking.mean_gains(jobs, remaking.begun_with())),
    }
    whole = replace(found, remake=remade, card=card).to_dict()
    out.mkdir(parents=True, exist_ok=True)
    (out / FILE).write_text(json.dumps(whole, indent=1) + "\n")
    return card


def _named(kinds: remaking.Kinds, gained: FloatArray) -> dict[str, float]:
    return {
        f"{regime}, {nodes} nodes": round(float(gain), 5)
        for (regime, nodes, *_), gain in zip(kinds, gained, strict=True)
    }
