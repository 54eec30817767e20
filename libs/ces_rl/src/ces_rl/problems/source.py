"""Where an environment's training problems come from: drawn, or one's own instances and networks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ces_core.model.errors import ProblemError
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_core.model.topology import IntArray
from ces_core.placement.candidates import candidates
from ces_core.placement.view import problem_view
from ces_core.search.annealing import uniform
from ces_rl.envs.simulation import SlotSize
from ces_rl.problems.draw import Kinds, draw, kinds
from ces_rl.problems.pool import Pool, pack

HELD_OUT = 10
"""Every tenth of one's own instances, by name, is kept for validation."""

Named = list[tuple[str, Problem]]


class Source(Protocol):
    """Problems to learn on."""

    @property
    def size(self) -> SlotSize:
        """The largest problem that comes."""

    def sample(self, random: IntArray, progress: float, count: int) -> tuple[Pool, IntArray]:
        """A pool and ``count`` indices into it. ``random`` (1,) is the generator's state; ``progress`` the share of the
        updates that is done."""


@dataclass(frozen=True)
class Drawn:
    """Problems of the regimes, drawn in compiled code."""

    size: SlotSize
    kinds_at: Callable[[float], Kinds]

    def sample(self, random: IntArray, progress: float, count: int) -> tuple[Pool, IntArray]:
        return draw(random, self.kinds_at(progress), count), np.arange(count)


@dataclass(frozen=True)
class Stored:
    """Problems of a fixed pool, drawn with repetition."""

    pool: Pool

    @property
    def size(self) -> SlotSize:
        return SlotSize.of(self.pool)

    def sample(self, random: IntArray, progress: float, count: int) -> tuple[Pool, IntArray]:
        share = np.array([uniform(random) for _ in range(count)])
        return self.pool, (share * len(self.pool.sizes)).astype(np.int64)


def curriculum(
    odds: dict[str, float],
    nodes: tuple[int, int],
    tasks: tuple[int, int],
    *,
    share: float,
    first_tasks: float,
    first_odds: float,
) -> Callable[[float], Kinds]:
    """What is drawn, by progress: within the first ``share`` of the updates task counts rise from ``first_tasks`` of
    their range, and the odds of all regimes but the first from ``first_odds`` of theirs."""

    def at(progress: float) -> Kinds:
        grown = min(progress / share, 1.0) if share > 0 else 1.0
        least, most = tasks
        ceiling = round(least + (most - least) * (first_tasks + (1.0 - first_tasks) * grown))
        factor = first_odds + (1.0 - first_odds) * grown
        now = {name: weight * (1.0 if i == 0 else factor) for i, (name, weight) in enumerate(odds.items())}
        return kinds(now, nodes, (least, max(ceiling, least)))

    return at


def packed(problems: Iterable[Problem]) -> Pool:
    """A pool of these problems, on the nodes that solvers consider."""
    return pack([problem_view(problem, candidates(problem)) for problem in problems])


def read_folder(folder: Path) -> tuple[Named, Named]:
    """The instances (``*.json``) of a folder, to learn on and held out. Raises ValueError, naming the file."""
    files = sorted(folder.glob("*.json"))
    if len(files) < 2:
        raise ValueError(
            f"{folder} holds {len(files)} instances (*.json); one to learn on and one to validate on is least"
        )
    named: Named = []
    for file in files:
        try:
            named.append((file.name, read_instance(_object(file))))
        except (OSError, ValueError, ProblemError) as error:
            raise ValueError(f"{file}: {error}") from error
    held = set(range(0, len(named), HELD_OUT))
    return [one for i, one in enumerate(named) if i not in held], [named[i] for i in sorted(held)]


def on_topology(
    topology: str, odds: dict[str, float], tasks: tuple[int, int], count: int, first_seed: int
) -> list[Problem]:
    """``count`` problems of drawn jobs and loads on one network, as :func:`random_instance` makes them; regimes by
    their odds. Raises ValueError for a network that cannot be read."""
    rng = np.random.default_rng(first_seed)
    names, weights = list(odds), np.array(list(odds.values()), dtype=np.float64)
    problems = []
    for i in range(count):
        regime = str(rng.choice(names, p=weights / weights.sum()))
        size = int(rng.integers(tasks[0], tasks[1] + 1))
        try:
            problems.append(read_instance(random_instance(regime, first_seed + i, tasks=size, topology=topology)))
        except (OSError, ProblemError) as error:
            raise ValueError(f"topology {topology}: {error}") from error
    return problems


def of_regimes(regimes: Sequence[str], each: int, first_seed: int, topology: str | None = None) -> list[Named]:
    """For every regime ``each`` instances with seeds from ``first_seed`` on."""
    unknown = set(regimes) - set(REGIMES)
    if unknown:
        raise ValueError(f"unknown regimes: {', '.join(sorted(unknown))}; there are {', '.join(REGIMES)}")
    shape: dict[str, Any] = {} if topology is None else {"topology": topology}
    return [
        [
            (f"{regime}-{seed}", read_instance(random_instance(regime, seed, **shape)))
            for seed in range(first_seed, first_seed + each)
        ]
        for regime in regimes
    ]


def _object(file: Path) -> dict[str, Any]:
    data = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError("must be a JSON object")
    return data
