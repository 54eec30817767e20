"""How good a policy is on instances that training never draws, beside ``search``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ces_core.candidates import candidates
from ces_core.generate import REGIMES, random_instance
from ces_core.instance import read_instance
from ces_core.kernels.compact import Compact, compact
from ces_core.policy.draws import best_of
from ces_core.problem import FloatArray
from ces_core.solvers.search import SEARCH
from ces_train.games import WON, Games, Most
from ces_train.pool import Pool, pack, view_of

FIRST_SEED = 900_000
"""Validation instances are ``random_instance(regime, FIRST_SEED + i)``."""

Scorer = Callable[[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]], NDArray[np.float32]]
"""Scores (B, N) from nodes, context and mask, as :class:`ces_core.policy.onnx.Policy` gives them."""


@dataclass(frozen=True)
class Validation:
    """Instances by regime, with what ``search`` reaches within its own bounds (NaN where it finds no place)."""

    regimes: tuple[str, ...]
    each: int
    pool: Pool
    reference: FloatArray  # (regimes * each,)

    @staticmethod
    def make(each: int, regimes: Sequence[str] = tuple(REGIMES), kept: Path | None = None) -> Validation:
        """``each`` instances of every regime. ``kept``: a file that remembers what ``search`` reached."""
        known: dict[str, float | None] = {}
        if kept is not None and kept.exists():
            known = json.loads(kept.read_text())
        views: list[Compact] = []
        for regime in regimes:
            for i in range(each):
                problem = read_instance(random_instance(regime, FIRST_SEED + i))
                views.append(compact(problem, candidates(problem)))  # all nodes, as solvers ask about them
                key = f"{regime}-{FIRST_SEED + i}"
                if key not in known:
                    metrics = SEARCH.solve(problem).metrics
                    known[key] = None if metrics is None else metrics.composite
        if kept is not None:
            kept.write_text(json.dumps(known))
        names = [f"{regime}-{FIRST_SEED + i}" for regime in regimes for i in range(each)]
        reference = [np.nan if known[name] is None else known[name] for name in names]
        return Validation(tuple(regimes), each, pack(views), np.array(reference, dtype=np.float64))


@dataclass(frozen=True)
class Score:
    """Of the instances that ``search`` solves: the share that was solved, and the mean distance to its composite."""

    solved: float
    regret: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def evaluate(
    scorer: Scorer, validation: Validation, *, samples: int = 0, temperature: float = 1.0, seed: int = 0
) -> dict[str, Score]:
    """Regime -> score, of the raw policy. ``samples`` 0: always the best node, and no step back; else the best of so
    many plans drawn at ``temperature``, as :mod:`ces_core.policy.draws` draws them."""
    if samples:
        rng = np.random.default_rng(seed)
        boards = (
            best_of(view_of(validation.pool, i), scorer, samples, temperature, rng)
            for i in range(len(validation.reference))
        )
        drawn = [-np.inf if board is None else float(board.state.score[0]) for board in boards]
        return beside_search(validation, np.array(drawn))
    count = len(validation.reference)
    games = Games(count, Most.of(validation.pool))
    games.start(validation.pool, np.arange(count))
    while games.playing.any():
        active = np.flatnonzero(games.playing)
        seats = games.seats
        scores = scorer(seats.nodes[active], seats.context[active], seats.mask[active])
        actions = np.zeros(count, dtype=np.int64)
        actions[active] = np.argmax(np.where(seats.mask[active], scores, -np.inf), axis=1)
        games.step(actions)
    worth = np.where(games.seats.status == WON, games.seats.worth, -np.inf)
    return beside_search(validation, worth)


def beside_search(validation: Validation, worth: FloatArray) -> dict[str, Score]:
    """Regime -> score, from the composites (regimes * each,) that were reached; -inf where there was no plan."""
    answers = {}
    for r, regime in enumerate(validation.regimes):
        part = slice(r * validation.each, (r + 1) * validation.each)
        there = np.isfinite(validation.reference[part])
        solved = there & np.isfinite(worth[part])
        distance = validation.reference[part][solved] - worth[part][solved]
        answers[regime] = Score(
            float(solved.sum() / max(there.sum(), 1)), float(distance.mean()) if solved.any() else np.nan
        )
    return answers
