"""Single-job rounds as in the thesis's simulation (section 4.3.2): each draws one cluster and one job.

Benchmarks of placing go through :func:`rounds`; :func:`derived_seed` also seeds simulations and training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ces_core.model.generate import random_instance


@dataclass(frozen=True)
class Round:
    """One cluster and one job, not drawn yet.

    ``seed`` makes the instance; regimes share it, so that they differ in link capacities alone.

    ``topology`` and ``nodes`` as :func:`ces_core.model.generate.random_instance` takes them. ``degree``: wires per node
    of a random network of so many nodes, on average; None: as usual.
    """

    regime: str
    tasks: int
    number: int
    seed: int
    nodes: int | None = None
    topology: str = "random"
    degree: float | None = None

    def instance(self) -> dict[str, Any]:
        """What ``ces solve`` would read."""
        likely = None
        if self.degree is not None and self.nodes is not None:
            likely = min(self.degree / max(self.nodes - 1, 1), 1.0)
        return random_instance(
            self.regime,
            self.seed,
            nodes=self.nodes,
            tasks=self.tasks,
            topology=self.topology,
            link_probability=likely,
        )


def rounds(
    regimes: Sequence[str],
    tasks: Sequence[int],
    count: int,
    seed: int,
    *,
    nodes: int | None = None,
    topology: str = "random",
    degree: float | None = None,
) -> Iterator[Round]:
    """``count`` rounds for every regime and number of tasks. Each has a seed of its own, derived from ``seed``."""
    for regime in regimes:
        for size in tasks:
            for number in range(count):
                yield Round(regime, size, number, derived_seed(seed, size, number), nodes, topology, degree)


def derived_seed(*parts: int) -> int:
    """A seed that depends on every part, within 32 bits."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
