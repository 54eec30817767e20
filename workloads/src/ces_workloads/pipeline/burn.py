"""Work that takes a known time of the reference core: the kinds that agents measure, in the same units
(docs/node-scores.md), so that a node of score 2 takes half as long."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat

from ces_workloads.peers import BadEnvironment

RATES = {"integer": 16_000.0, "float": 2.0e8, "matrix": 1.2e11}
"""A second of one thread of the reference core: powers, terms, flop."""
TERMS = 1024
SIDE = 128


def burner(work_us: int, work_class: str | None) -> Callable[[], None]:
    """What does this much work each time that it is called. Raises BadEnvironment for a kind that is not done here."""
    if not work_us:
        return lambda: None
    kind = work_class or "integer"
    if kind not in RATES:
        raise BadEnvironment(f"work of class {kind} is not done by this program: take {', '.join(RATES)}")
    step, each = {"integer": _powers, "float": _distances, "matrix": _products}[kind]()
    times = max(1, round(work_us * 1e-6 * RATES[kind] / each))

    def burn() -> None:
        for _ in repeat(None, times):
            step()

    return burn


def _powers() -> tuple[Callable[[], object], float]:
    base, modulus, exponent = (1 << 511) - 187, (1 << 512) - 569, (1 << 63) - 25
    return lambda: pow(base, exponent, modulus), 1.0


def _distances() -> tuple[Callable[[], object], float]:
    one, other = (tuple(math.sin(each + shift) for each in range(TERMS)) for shift in (0.0, 0.5))
    return lambda: math.dist(one, other), float(TERMS)


def _products() -> tuple[Callable[[], object], float]:
    import numpy as np

    one = np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    into = np.empty_like(one)
    return lambda: np.matmul(one, one.T, out=into), 2.0 * SIDE**3
