"""Rules that choose a cluster for a task, or let it wait.

Aware of cards a rule chooses among the clusters where the task fits on a host; blind, among those with enough in sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ces_core.gpus.clusters import DELAY, Booleans, Clusters, Floats, wanted
from ces_core.gpus.model import CARD, Asked, Integers
from ces_core.gpus.rewards import mean_use, with_task

Order = Callable[[Clusters, Asked, np.random.Generator], Floats]
"""What a rule makes of each cluster, the most is best; equals go to the first. Shape (clusters,)."""


class ClusterRule(Protocol):
    """``outlook``: what comes after this task."""

    def choose(self, clusters: Clusters, task: Asked, outlook: Outlook) -> int:
        """A cluster or DELAY."""


@dataclass(frozen=True)
class Outlook:
    """``more``: how many tasks come after this one. ``sizes``: milli of tasks as they usually come, ascending, shape
    (tasks,). ``rng``: for those who draw."""

    more: int
    sizes: Integers
    rng: np.random.Generator


def at_random(clusters: Clusters, task: Asked, rng: np.random.Generator) -> Floats:
    """Any."""
    return rng.random(clusters.count)


def first(clusters: Clusters, task: Asked, rng: np.random.Generator) -> Floats:
    """Greedy: the search ends where the task fits."""
    return np.zeros(clusters.count)


def least_idle(clusters: Clusters, task: Asked, rng: np.random.Generator) -> Floats:
    """Best fit: the fullest one, before the task is there."""
    return mean_use(clusters)


def alike(clusters: Clusters, task: Asked, rng: np.random.Generator) -> Floats:
    """Utilization: the cosine between what is left and what is asked, both as shares of the cluster."""
    left, asked = clusters.free() / clusters.total, wanted(task) / clusters.total
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(asked, axis=1)
    return np.where(lengths > 0, (left * asked).sum(axis=1) / np.where(lengths > 0, lengths, 1.0), 0.0)


def fullest_after(clusters: Clusters, task: Asked, rng: np.random.Generator) -> Floats:
    """Expert: the fullest one with the task on it, which the reward in thought makes the best."""
    return with_task(clusters, task)


def emptiest_after(clusters: Clusters, task: Asked, rng: np.random.Generator) -> Floats:
    """Spread: the emptiest one with the task on it."""
    return -with_task(clusters, task)


@dataclass(frozen=True)
class ByOrder:
    """The first in its order of the clusters where the task fits. ``blind``: of those with enough in sum, up to
    ``tries`` of them until it does fit; with as many tries as clusters that is the same as being aware."""

    order: Order
    blind: bool = False
    tries: int = 1

    def choose(self, clusters: Clusters, task: Asked, outlook: Outlook) -> int:
        there = clusters.hosts(task) >= 0
        among = clusters.seem_to_fit(task) if self.blind else there
        value = self.order(clusters, task, outlook.rng)
        found = _best(value, among)
        for _ in range(self.tries - 1):
            if found == DELAY or there[found]:
                break
            among[found] = False
            found = _best(value, among)
        return found


@dataclass(frozen=True)
class Refuse:
    """Counts tasks: lets one wait where the smaller ones to come, if they are as usual, need all the room there is;
    others go by ``rule``. ``used``: the share of that room that can be filled."""

    rule: ClusterRule = field(default_factory=lambda: ByOrder(fullest_after))
    used: float = 0.9

    def choose(self, clusters: Clusters, task: Asked, outlook: Outlook) -> int:
        size = task.gpus * task.milli
        smaller = outlook.sizes[: int(np.searchsorted(outlook.sizes, size))]
        expected = outlook.more * float(smaller.sum()) / len(outlook.sizes)
        if size + expected > self.used * room_for(smaller, clusters.fleet.milli) and expected > 0:
            return DELAY
        return self.rule.choose(clusters, task, outlook)


def room_for(sizes: Integers, left: Integers) -> float:
    """Milli of cards, each counted by the share of these sizes (ascending) that fit on it; all of it for no sizes."""
    if not len(sizes):
        return float(left.sum())
    fitting = np.searchsorted(np.minimum(sizes, CARD), left, side="right") / len(sizes)
    return float((left * fitting).sum())


def _best(value: Floats, among: Booleans) -> int:
    return int(np.where(among, value, -np.inf).argmax()) if among.any() else DELAY


ORDERS: dict[str, Order] = {"random": at_random, "greedy": first, "best-fit": least_idle, "utilization": alike}
"""Those of the paper, which are there aware, blind, and blind with a second try."""
CLUSTER_RULES: dict[str, ClusterRule] = {
    **{name: ByOrder(order) for name, order in ORDERS.items()},
    "expert": ByOrder(fullest_after),
    "spread": ByOrder(emptiest_after),
    "refuse": Refuse(),
    **{f"{name}-blind": ByOrder(order, blind=True) for name, order in ORDERS.items()},
    **{f"{name}-retry": ByOrder(order, blind=True, tries=2) for name, order in ORDERS.items()},
}
