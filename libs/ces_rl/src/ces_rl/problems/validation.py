"""Held-out problems, and how far a policy stays below what ``search`` reaches on them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ces_core.model.generate import REGIMES
from ces_core.model.instance import write_instance
from ces_core.model.problem import FloatArray
from ces_core.search.solver import SEARCH
from ces_rl.problems.pool import Pool
from ces_rl.problems.source import Named, of_regimes, packed

FIRST_SEED = 900_000
"""Validation instances of the regimes are ``random_instance(regime, FIRST_SEED + i)``; training never draws them."""


@dataclass(frozen=True)
class Score:
    """Of the instances that ``search`` solves: the share that was solved, and the mean distance to its composite."""

    solved: float
    regret: float


@dataclass(frozen=True)
class Validation:
    """Instances in groups, with the composite that ``search`` reaches within its own bounds (NaN: no place)."""

    groups: tuple[tuple[str, int], ...]  # name and number of instances, in the order of the pool
    pool: Pool
    reference: FloatArray  # (instances,)

    @staticmethod
    def make(
        each: int, regimes: Sequence[str] = tuple(REGIMES), kept: Path | None = None, topology: str | None = None
    ) -> Validation:
        """``each`` instances of every regime. ``kept``: a file that remembers what ``search`` reached."""
        named = of_regimes(regimes, each, FIRST_SEED, topology)
        prefix = "" if topology is None else f"{topology}: "
        return Validation.of(
            {
                regime: [(prefix + name, one) for name, one in group]
                for regime, group in zip(regimes, named, strict=True)
            },
            kept,
        )

    @staticmethod
    def of(groups: Mapping[str, Named], kept: Path | None = None) -> Validation:
        """These instances, by the name of their group."""
        known: dict[str, float | None] = {}
        if kept is not None and kept.exists():
            known = json.loads(kept.read_text())
        for name, problem in (one for group in groups.values() for one in group):
            if name not in known:
                metrics = SEARCH.solve(problem).metrics
                known[name] = None if metrics is None else metrics.composite
        if kept is not None:
            kept.write_text(json.dumps(known))
        found = [known[name] for group in groups.values() for name, _ in group]
        reference = np.array([np.nan if composite is None else composite for composite in found], dtype=np.float64)
        pool = packed(problem for group in groups.values() for _, problem in group)
        return Validation(tuple((name, len(group)) for name, group in groups.items()), pool, reference)

    def regret(self, composites: FloatArray) -> dict[str, Score]:
        """Group -> score, from the composites (instances,) that were reached; -inf where there was no plan."""
        scores, first = {}, 0
        for name, count in self.groups:
            part = slice(first, first + count)
            there = np.isfinite(self.reference[part])
            solved = there & np.isfinite(composites[part])
            distance = self.reference[part][solved] - composites[part][solved]
            scores[name] = Score(
                float(solved.sum() / max(there.sum(), 1)), float(distance.mean()) if solved.any() else np.nan
            )
            first += count
        return scores


def named_by_content(named: Named) -> Named:
    """The same with a hash in each name, so that a changed file is not taken for the one that was measured."""
    return [
        (f"{name} {hashlib.sha256(json.dumps(write_instance(problem)).encode()).hexdigest()[:12]}", problem)
        for name, problem in named
    ]
