"""What a learned policy sees before it sends a task to a cluster: of each cluster, and of the task and those to come.

The sums are what the EADE-DDPG paper shows (its table 5). The rest is what they hide: what the host that the task would
get has left then, and whether smaller tasks to come need the room. Several streams are seen at once: their clusters
lie one after the other in one fleet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ces_core.compiled.jit import compiled
from ces_core.gpus.clusters import RESOURCES, Booleans, Floats, host_of
from ces_core.gpus.fragmentation import Typical, fragments, typical
from ces_core.gpus.model import CARD, Asked, Fleet, Integers
from ces_core.gpus.scores import tightest_card

SUMS = tuple(f"free {name}" for name in RESOURCES)
"""Shares of what the cluster has."""
HOST = (
    "fits", "milli left of the card", "memory left of the card", "cpu left of the host", "milli newly of no use",
    "whole cards", "cpu of the cluster", "milli of the cluster",
)  # fmt: skip
"""0 to 3 and 4: of the host that the task would get, with it there. Whole cards: the share of cards that are free."""
TASK = (*(f"asked {name}" for name in RESOURCES), "tasks to come")
"""Of a mean cluster; and hundreds of tasks, this one counted."""
OUTLOOK = ("smaller tasks to come", "all tasks to come")
"""What they need with this one, as a share of the room for them."""
PRESSURE = len(TASK)
"""The first of OUTLOOK among the columns of a task."""
MOST_CPU, MOST_CARD = 100_000.0, 16_280.0
MOST_PRESSURE = 3.0

Numbers = NDArray[np.float32]


def schema_hash() -> str:
    """Of what is seen, in its order."""
    return hashlib.sha256(repr((SUMS, HOST, TASK, OUTLOOK)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Usual:
    """Tasks as they usually come. ``smaller``: how many ask for less than each number of milli, and ``amount``: the
    milli of these together, shape (milli,) each; ``count``: of all."""

    kinds: Typical
    smaller: Integers
    amount: Integers
    count: int

    @staticmethod
    def of(tasks: Iterable[Asked]) -> Usual:
        every = list(tasks)
        sizes = np.array(sorted(task.gpus * task.milli for task in every), np.int64)
        smaller = np.searchsorted(sizes, np.arange(max(sizes[-1], CARD) + 2))
        amount = np.concatenate([[0], np.cumsum(sizes)])[smaller]
        return Usual(typical(every), smaller.astype(np.int64), amount.astype(np.int64), len(every))


@dataclass(frozen=True)
class Seen:
    """Of S streams with C clusters each. ``free``: sums (S, C, resources); ``hosts``: that the task would get, in the
    fleet, -1 for none, (S, C); ``clusters`` (S, C, features) and ``task`` (S, features): for a network."""

    free: Floats
    hosts: Integers
    clusters: Numbers
    task: Numbers


@dataclass(frozen=True)
class View:
    """``sums``: of clusters only what the paper shows. ``masked``: only right actions; ``waiting``: to wait always is
    one. ``renumbered``: clusters are in the order of their use, the fullest first."""

    sums: bool = False
    masked: bool = True
    waiting: bool = True
    renumbered: bool = False

    def shown(self, seen: Seen) -> tuple[Numbers, Numbers, Booleans, Integers]:
        """Of S streams what a network takes, the mask, and which cluster each of its numbers is, (S, C)."""
        there = seen.hosts >= 0
        order = np.broadcast_to(np.arange(there.shape[1]), there.shape)
        clusters = seen.clusters
        if self.renumbered:
            order = np.argsort(clusters[:, :, : len(SUMS)].mean(axis=2), axis=1, kind="stable")
            clusters = np.take_along_axis(clusters, order[:, :, None], axis=1)
            there = np.take_along_axis(there, order, axis=1)
        mask = np.ones((len(there), there.shape[1] + 1), np.bool_)
        if self.masked:
            mask[:, :-1] = there
            mask[:, -1] = self.waiting | ~there.any(axis=1)
        if self.sums:
            return clusters[:, :, : len(SUMS)], seen.task[:, : len(TASK)], mask, order
        return clusters, seen.task, mask, order


@compiled
def _look(
    fleet: Fleet, size: int, tasks: Integers, more: Integers, usual: Typical, smaller: Integers, amount: Integers,
    count: int, free: Floats, hosts: Integers, wide: Numbers, outlook: Numbers,
) -> None:  # fmt: skip
    streams, clusters = hosts.shape
    for stream in range(streams):
        row = tasks[stream]
        task = Asked(row[0], row[1], row[2], row[3], row[4], row[5])
        asked = task.gpus * task.milli
        fewer, room, whole_room = smaller[min(asked, len(smaller) - 1)], 0.0, 0
        for cluster in range(clusters):
            first = (stream * clusters + cluster) * size
            cards, whole = 0, 0
            for resource in range(4):
                free[stream, cluster, resource] = 0.0
            for host in range(first, first + size):
                free[stream, cluster, 0] += fleet.cpu[host]
                free[stream, cluster, 1] += fleet.memory[host]
                for card in range(fleet.cards[host]):
                    left = fleet.milli[host, card]
                    free[stream, cluster, 2] += fleet.card_memory[host, card]
                    free[stream, cluster, 3] += left
                    whole += left == CARD
                    whole_room += left
                    if fewer > 0:
                        taken = count if left >= CARD else smaller[left + 1]
                        room += left * min(fewer, taken) / fewer
                cards += fleet.cards[host]
            found = host_of(fleet, first, size, task)
            hosts[stream, cluster] = found
            wide[stream, cluster, 5] = whole / max(cards, 1)
            for column in range(5):
                wide[stream, cluster, column] = 0.0
            if found < 0:
                continue
            wide[stream, cluster, 0] = 1.0
            wide[stream, cluster, 3] = (fleet.cpu[found] - task.cpu) / MOST_CPU
            if task.gpus == 0:
                continue
            left_after = fleet.milli[found].copy()
            if task.milli < CARD:
                card = tightest_card(fleet, found, task)
                left_after[card] -= task.milli
                wide[stream, cluster, 1] = left_after[card] / CARD
                wide[stream, cluster, 2] = (fleet.card_memory[found, card] - task.card_memory) / MOST_CARD
            else:
                open_cards = task.gpus
                for card in range(fleet.cards[found]):
                    if open_cards > 0 and left_after[card] == CARD:
                        left_after[card] = 0
                        open_cards -= 1
            before = fragments(fleet.cpu[found], fleet.milli[found], fleet.model[found], usual)
            after = fragments(fleet.cpu[found] - task.cpu, left_after, fleet.model[found], usual)
            wide[stream, cluster, 4] = (after - before) / (CARD * usual.total)
        expected = more[stream] * amount[min(asked, len(amount) - 1)] / count
        outlook[stream, 0] = 0.0
        if expected > 0:
            outlook[stream, 0] = min((asked + expected) / max(room, 1.0), MOST_PRESSURE)
        all_of_them = asked + more[stream] * amount[len(amount) - 1] / count
        outlook[stream, 1] = min(all_of_them / max(whole_room, 1.0), MOST_PRESSURE)


def look(fleet: Fleet, size: int, total: Floats, tasks: Integers, more: Sequence[int] | Integers, usual: Usual) -> Seen:
    """``total``: what clusters have when nothing runs, (S, C, resources). ``tasks``: (S, 6), each as Asked. ``more``:
    how many come after it, (S,)."""
    streams, clusters = total.shape[:2]
    free, hosts = np.empty(total.shape), np.empty((streams, clusters), np.int64)
    wide, outlook = np.empty((streams, clusters, len(HOST)), np.float32), np.empty((streams, len(OUTLOOK)), np.float32)
    after = np.asarray(more, np.int64)
    _look(fleet, size, tasks, after, usual.kinds, usual.smaller, usual.amount, usual.count, free, hosts, wide, outlook)
    mean = total.mean(axis=1)
    wide[:, :, 6:8] = total[:, :, [0, 3]] / mean[:, None, [0, 3]]
    wanted = amounts(tasks) / mean
    task = np.concatenate([wanted, (after[:, None] + 1) / 100.0, outlook], axis=1).astype(np.float32)
    return Seen(free, hosts, np.concatenate([free / total, wide], axis=2).astype(np.float32), task)


def amounts(tasks: Integers) -> Floats:
    """What tasks (S, 6) take of a cluster, (S, resources): as :func:`ces_core.gpus.clusters.wanted`."""
    gpus = tasks[:, 2]
    return np.stack([tasks[:, 0], tasks[:, 1], gpus * tasks[:, 5], gpus * tasks[:, 3]], axis=1).astype(np.float64)
