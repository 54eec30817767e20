"""Nodes with GPUs, tasks that ask for cards or for a share of one, and what is free, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CARD = 1000
"""Milli of a whole card."""
MOST_CARDS = 16
"""Of one node."""
MOST_MODELS = 62
"""Different models of cards, since a set of them is the bits of one number."""

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class GpuNode:
    """``cpu`` in milli, ``memory`` in MiB, ``cards`` of one ``model`` with ``card_memory`` MiB each.

    Raises ValueError where a number is negative or there are more cards than MOST_CARDS.
    """

    name: str
    cpu: int
    memory: int
    cards: int = 0
    model: str = ""
    card_memory: int = 0

    def __post_init__(self) -> None:
        if min(self.cpu, self.memory, self.card_memory) < 0:
            raise ValueError(f"node {self.name}: cpu, memory and card_memory must not be negative")
        if not 0 <= self.cards <= MOST_CARDS:
            raise ValueError(f"node {self.name}: {self.cards} cards are not within 0..{MOST_CARDS}")


@dataclass(frozen=True)
class GpuTask:
    """Asks for ``milli`` of each of ``gpus`` cards: less than a whole card only of a single one. ``models``: which
    will do, all where empty. ``card_memory``: MiB of each card.

    Raises ValueError where it asks for something else.
    """

    name: str
    cpu: int
    memory: int
    gpus: int = 0
    milli: int = 0
    models: frozenset[str] = frozenset()
    card_memory: int = 0

    def __post_init__(self) -> None:
        if min(self.cpu, self.memory, self.card_memory) < 0:
            raise ValueError(f"task {self.name}: cpu, memory and card_memory must not be negative")
        if not 0 <= self.gpus <= MOST_CARDS:
            raise ValueError(f"task {self.name}: {self.gpus} GPUs are not within 0..{MOST_CARDS}")
        if not self.gpus and self.milli:
            raise ValueError(f"task {self.name}: {self.milli} milli of no card")
        if self.gpus and not (self.milli == CARD or (self.gpus == 1 and 0 < self.milli < CARD)):
            raise ValueError(f"task {self.name}: {self.gpus} x {self.milli} milli: a share is of one card, 1..{CARD}")

    @property
    def total(self) -> int:
        """Milli of all its cards."""
        return self.gpus * self.milli


class Asked(NamedTuple):
    """A task for compiled code. ``models``: a bit for each that will do; 0: any."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    models: int
    card_memory: int


class Fleet(NamedTuple):
    """What is free on each node: ``cpu`` milli and ``memory`` MiB, shape (nodes,), and of each card ``milli`` and
    ``card_memory`` MiB, shape (nodes, cards). ``cards``: how many a node has; the columns after them stay 0. ``model``:
    its bit. ``kinds``: running tasks by what they have, shape (nodes, kinds): a share, one card, two cards ..."""

    cpu: Integers
    memory: Integers
    milli: Integers
    card_memory: Integers
    cards: Integers
    model: Integers
    kinds: Integers

    def place(self, node: int, cards: Sequence[int], task: Asked) -> None:
        """Takes what the task asks for. Nothing is checked."""
        self._move(node, cards, task, -1)

    def remove(self, node: int, cards: Sequence[int], task: Asked) -> None:
        """Gives it back."""
        self._move(node, cards, task, 1)

    def _move(self, node: int, cards: Sequence[int], task: Asked, sign: int) -> None:
        self.cpu[node] += sign * task.cpu
        self.memory[node] += sign * task.memory
        for card in cards:
            self.milli[node, card] += sign * task.milli
            self.card_memory[node, card] += sign * task.card_memory
        if task.gpus:
            self.kinds[node, kind(task)] -= sign


def kind(task: Asked) -> int:
    """Its column in ``Fleet.kinds``, for a task with a GPU."""
    return task.gpus if task.milli == CARD else 0


class Models:
    """Bits for names of models, in the order in which they are first asked for."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}

    def bit(self, name: str) -> int:
        """0 for no name. Raises ValueError where there are more than MOST_MODELS."""
        if not name:
            return 0
        if name not in self._bits and len(self._bits) == MOST_MODELS:
            raise ValueError(f"more than {MOST_MODELS} models of cards")
        return self._bits.setdefault(name, 1 << len(self._bits))

    def bits(self, names: Iterable[str]) -> int:
        return sum(self.bit(name) for name in sorted(set(names)))

    def asked(self, task: GpuTask) -> Asked:
        bits = self.bits(task.models)
        return Asked(task.cpu, task.memory, task.gpus, task.milli, bits, task.card_memory)

    def fleet(self, nodes: Sequence[GpuNode]) -> Fleet:
        """With everything free, in the order of the nodes."""
        cards = np.array([node.cards for node in nodes], np.int64)
        there = np.arange(max(1, cards.max(initial=0))) < cards[:, None]
        return Fleet(
            cpu=np.array([node.cpu for node in nodes], np.int64),
            memory=np.array([node.memory for node in nodes], np.int64),
            milli=there * np.int64(CARD),
            card_memory=there * np.array([node.card_memory for node in nodes], np.int64)[:, None],
            cards=cards,
            model=np.array([self.bit(node.model) for node in nodes], np.int64),
            kinds=np.zeros((len(nodes), MOST_CARDS + 1), np.int64),
        )
