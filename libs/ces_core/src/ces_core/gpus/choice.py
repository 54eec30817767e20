"""Where a task goes by a policy: the node of the highest score, the first of equals, and its cards there."""

from __future__ import annotations

import numpy as np

from ces_core.gpus.fragmentation import Typical
from ces_core.gpus.model import CARD, Asked, Fleet, Integers
from ces_core.gpus.scores import Policy, rate, share_of


class Chooser:
    """Keeps what a policy thinks of every node for each kind of task, and asks again only about nodes that changed.

    Nodes are in the order in which equals are preferred; in FGD's public simulator that of their names.
    """

    def __init__(self, policy: Policy, fleet: Fleet, usual: Typical, rng: np.random.Generator) -> None:
        self.fleet = fleet
        self._policy, self._usual, self._rng = policy, usual, rng
        self._all = np.arange(len(fleet.cpu))
        self._scores: dict[Asked, tuple[Integers, int]] = {}
        self._changed: list[int] = []

    def scores(self, task: Asked) -> Integers:
        """Of all nodes; -1 where the task does not fit. Not to be changed."""
        if task in self._scores:
            found, since = self._scores[task]
            nodes = np.array(sorted(set(self._changed[since:])), np.int64)
        else:
            found, nodes = np.empty(len(self._all), np.int64), self._all
        if len(nodes):
            rate(self._policy, self.fleet, self._usual, task, nodes, found)
        self._scores[task] = found, len(self._changed)
        return found

    def choose(self, task: Asked) -> tuple[int, tuple[int, ...]] | None:
        """Node and cards; None where it fits nowhere."""
        scores = self.scores(task)
        if self._policy is Policy.RANDOM:
            there = np.flatnonzero(scores >= 0)
            node = int(self._rng.choice(there)) if len(there) else -1
        else:
            node = int(scores.argmax())
        if node < 0 or scores[node] < 0:
            return None
        return node, self._cards(node, task)

    def place(self, node: int, cards: tuple[int, ...], task: Asked) -> None:
        """Takes what it asks for."""
        self.fleet.place(node, cards, task)
        self._changed.append(node)

    def _cards(self, node: int, task: Asked) -> tuple[int, ...]:
        if not task.gpus:
            return ()
        if self._policy is Policy.RANDOM or task.milli == CARD:
            there = self.fleet.milli[node] >= task.milli
            there &= (self.fleet.card_memory[node] >= task.card_memory) & (
                np.arange(len(there)) < self.fleet.cards[node]
            )
            fitting = np.flatnonzero(there)
            if task.milli < CARD:
                return (int(self._rng.choice(fitting)),)
            return tuple(int(card) for card in fitting[: task.gpus])
        return (share_of(self._policy, self.fleet, self._usual, task, node),)
