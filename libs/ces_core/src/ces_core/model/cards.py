"""GPU cards of a cluster, where tasks have shares of them: sums over a node do not say then what fits on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ces_core.model.topology import IntArray

AMOUNTS = 2
"""Rows of ``capacity`` and ``used``: thousandths of the card, and its memory in bytes."""
Place = tuple[str, str]
"""A node, and what the card is called there."""


@dataclass(frozen=True, eq=False)
class Cards:
    """``column``: of each card; ``node``: the index of its node, shape (cards,). ``capacity`` and ``used``: shape
    (AMOUNTS, cards)."""

    column: Mapping[Place, int]
    node: IntArray
    capacity: NDArray[np.float64]
    used: NDArray[np.float64]

    def with_used(self, used: NDArray[np.float64]) -> Cards:
        return replace(self, used=used)


@dataclass(frozen=True, eq=False)
class CardValue:
    """What is left over of GPU cards counts beside the composite, for solvers that can (:mod:`ces_core.search.solver`).

    ``change``: of the value of each node, in units of the composite, by the number of the job's steps on it, shape
    (nodes, steps + 1): 0 at first, and never rising. ``per_card``: steps per GPU; a step is what a task of the job asks
    for of one card."""

    change: NDArray[np.float64]
    per_card: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "change", np.asarray(self.change, np.float64))  # compiled code takes no other

    def best(self, among: NDArray[np.bool_] | np.bool_, count: int) -> IntArray:
        """At most ``count`` of the nodes ``among``: those that lose least by the first step, ascending."""
        nodes = np.flatnonzero(among)
        found: IntArray = np.sort(nodes[np.argsort(-self.change[nodes, 1], kind="stable")[:count]])
        return found


@dataclass(frozen=True)
class PlannedCard:
    """What a task is to have of a card: ``share`` in thousandths, ``memory`` in bytes."""

    task: str
    node: str
    card: str
    share: int
    memory: int
