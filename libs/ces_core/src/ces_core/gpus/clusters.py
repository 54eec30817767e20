"""Clusters of hosts with GPUs, each task for one of them: what is free, where a task fits, and which host it gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled, inner
from ces_core.gpus.model import CARD, Asked, Fleet, Integers
from ces_core.gpus.scores import fits, tightest_card

DELAY = -1
"""Instead of a cluster: the task waits."""
RESOURCES = ("cpu", "memory", "card_memory", "milli")
"""In the order of the columns: of hosts CPU and memory, of all their cards memory and milli."""

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


@inner
def host_of(fleet: Fleet, first: int, size: int, task: Asked) -> int:
    """That a task would get of the ``size`` hosts from ``first`` on, -1 where it fits on none."""
    best, least, found = 0, 0, -1
    for host in range(first, first + size):
        if not fits(fleet, host, task):
            continue
        left = 0
        if task.gpus > 0:
            left = fleet.milli[host, tightest_card(fleet, host, task)]
        cpu = fleet.cpu[host]
        if found < 0 or left < best or (left == best and cpu < least):
            best, least, found = left, cpu, host
    return found


@compiled
def _hosts(fleet: Fleet, size: int, task: Asked, found: Integers) -> None:
    for cluster in range(len(found)):
        found[cluster] = host_of(fleet, cluster * size, size, task)


@compiled
def _tightest(fleet: Fleet, host: int, task: Asked) -> int:
    return tightest_card(fleet, host, task)


@dataclass(frozen=True)
class Clusters:
    """``size`` hosts each, one cluster's after the other in the fleet. ``total``: what each has when nothing runs,
    shape (clusters, resources), nowhere 0."""

    fleet: Fleet
    size: int
    total: Floats

    @staticmethod
    def of(fleet: Fleet, size: int) -> Clusters:
        """With nothing running. Raises ValueError where a cluster has none of a resource, or hosts are left over."""
        if len(fleet.cpu) % size or not len(fleet.cpu):
            raise ValueError(f"{len(fleet.cpu)} hosts are no clusters of {size}")
        total = sums(fleet, size)
        if not (total > 0).all():
            raise ValueError("every cluster needs CPU, memory and cards with memory")
        return Clusters(fleet, size, total)

    @property
    def count(self) -> int:
        return len(self.total)

    def free(self) -> Floats:
        """Shape (clusters, resources)."""
        return sums(self.fleet, self.size)

    def used(self) -> Floats:
        """As a share of what there is, shape (clusters, resources)."""
        return 1.0 - self.free() / self.total

    def hosts(self, task: Asked) -> Integers:
        """Of each cluster the host that the task would get, -1 where it fits on none: the one with the fullest card
        that still takes it, of these the one with least CPU left, the first of equals. Shape (clusters,)."""
        found = np.empty(self.count, np.int64)
        _hosts(self.fleet, self.size, task, found)
        return found

    def cards(self, host: int, task: Asked) -> tuple[int, ...]:
        """That it gets on a host where it fits: the fullest one that takes a share, the first free ones otherwise."""
        if not task.gpus:
            return ()
        if task.milli < CARD:
            return (int(_tightest(self.fleet, host, task)),)
        there = (self.fleet.milli[host] >= task.milli) & (self.fleet.card_memory[host] >= task.card_memory)
        return tuple(int(card) for card in np.flatnonzero(there)[: task.gpus])

    def seem_to_fit(self, task: Asked) -> Booleans:
        """Where the sums of all hosts and cards are enough, whatever each of them has left. Shape (clusters,)."""
        found: Booleans = np.all(self.free() >= wanted(task), axis=1)
        return found


def wanted(task: Asked) -> Floats:
    """What it takes of a cluster, shape (resources,)."""
    return np.array([task.cpu, task.memory, task.gpus * task.card_memory, task.gpus * task.milli], np.float64)


def sums(fleet: Fleet, size: int) -> Floats:
    """What is free of each cluster of ``size`` hosts, shape (clusters, resources)."""
    columns = fleet.cpu, fleet.memory, fleet.card_memory.sum(axis=1), fleet.milli.sum(axis=1)
    found: Floats = np.stack(columns, axis=1).reshape(-1, size, len(columns)).sum(axis=1).astype(np.float64)
    return found
