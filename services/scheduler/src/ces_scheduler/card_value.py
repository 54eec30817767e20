"""What a solver is to make of what is left over of cards: FGD's measure, so that mixed loads keep whole cards. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from ces_common.jobfile import Task
from ces_common.messages.cards import is_model
from ces_common.resources import WHOLE
from ces_core.gpus.fragmentation import Typical, typical
from ces_core.gpus.left_over import left_over
from ces_core.gpus.model import CARD, MOST_MODELS, Asked, Fleet
from ces_core.model.cards import Cards, CardValue
from ces_core.model.problem import Problem
from ces_scheduler.card_cells import CardTable

WEIGHT: Final = 0.02
"""What a card of fragments counts beside the composite; measured in docs/benchmarks/gpu-mix.md."""
WHOLE_ONES: Final = 4
"""For every four tasks that are known, one more counts that asks for any whole card: some may always come."""


@dataclass(frozen=True, eq=False)
class LeftOver:
    """``tasks``: those that run and wait. ``weight``: of a card's fragments, in units of the composite; 0: none."""

    table: CardTable
    tasks: Iterable[Task]
    weight: float = WEIGHT

    def valued(self, problem: Problem, tasks: Sequence[Task], cards: Cards) -> Problem:
        """The problem with what its tasks leave over of cards counted. ``cards``: as they are used on its cluster."""
        asking = [task for task in tasks if task.gpus]
        cluster, count = problem.cluster, len(problem.cluster.topology.nodes)
        number = np.bincount(cards.node, self.table.number(asking[0], cards), count)
        nodes = np.flatnonzero(problem.homes.any(axis=0) & (number > 0))
        total = len(asking) if asking[0].gpu_share else sum(task.gpu for task in asking)
        if not self.weight or not len(nodes):
            return problem
        steps = min(total, int(number[nodes].max()))
        share, _ = self.table.asked(asking[0])
        cpu = sum(task.cpu for task in asking) // total
        step = Asked(cpu, 0, 1, share, 0, asking[0].gpu_memory)  # a share in proportion fits on whichever card has it
        fleet = self._fleet(problem, cards)
        part = Fleet(*(np.ascontiguousarray(each[nodes]) for each in fleet))
        change = np.zeros((count, steps + 1))
        change[nodes] = self.weight * left_over(part, self._usual, step, steps)
        value = CardValue(change, WHOLE / share)
        return replace(problem, cluster=cluster, card_value=value)

    def _fleet(self, problem: Problem, cards: Cards) -> Fleet:
        """All nodes; those of several models of cards count as having each."""
        count, (share, memory) = len(problem.cluster.topology.nodes), np.rint(cards.capacity - cards.used)
        each = np.bincount(cards.node, minlength=count)
        slot = np.arange(len(cards.node)) - np.searchsorted(cards.node, cards.node)
        milli = np.zeros((count, max(1, each.max(initial=0))), np.int64)
        left = np.zeros_like(milli)
        milli[cards.node, slot] = np.maximum(share, 0) * (CARD // WHOLE)
        left[cards.node, slot] = np.maximum(memory, 0)
        model = np.zeros(count, np.int64)
        np.bitwise_or.at(model, cards.node, self._model)
        cpu = problem.cluster.node_free[0].astype(np.int64)
        return Fleet(cpu, cpu * 0, milli, left, each.astype(np.int64), model, np.zeros((count, 1), np.int64))

    @cached_property
    def _bits(self) -> dict[str, int]:
        """A bit for each model; none where there are too many to tell apart."""
        names = sorted({card.model for _, card in self.table.known if card.model})
        return {name: 1 << i for i, name in enumerate(names)} if len(names) <= MOST_MODELS else {}

    @cached_property
    def _model(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Of each card, the bit."""
        return np.array([self._bits.get(card.model, 0) for _, card in self.table.known], np.int64)

    @cached_property
    def _usual(self) -> Typical:
        known = [asked for task in self.tasks if task.gpus and (asked := self._asked(task)) is not None]
        return typical([*known, *[Asked(0, 0, 1, CARD, 0, 0)] * max(1, len(known) // WHOLE_ONES)])

    def _asked(self, task: Task) -> Asked | None:
        """None for models that no card is of."""
        cards = {card.model: card for _, card in self.table.known}.values()
        bits = sum(self._bits.get(card.model, 0) for card in cards if is_model(card, task.gpu_models))
        if task.gpu_models and not bits:
            return None
        models = bits if task.gpu_models else 0
        share = task.gpu_share * (CARD // WHOLE)
        return Asked(task.cpu, 0, 1 if share else task.gpu, share or CARD, models, 0)
