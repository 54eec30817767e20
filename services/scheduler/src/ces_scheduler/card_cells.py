"""The cards of an offer as the core's cells, so that what it supposes of the future is supposed of each card. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ces_common.jobfile import Task
from ces_common.messages.cards import Card
from ces_common.messages.records import JobRecord, NodeRecord
from ces_common.resources import WHOLE
from ces_core.model.cards import Cards, PlannedCard
from ces_core.model.plan import Plan
from ces_core.model.problem import Cluster, Problem
from ces_core.queue.ledger import CARD, CARD_MEMORY
from ces_scheduler.eligibility import kind_of, suits
from ces_scheduler.offer import GPU, Cells, HeldCards, Offer

Integers = NDArray[np.int64]


def particular(task: Task) -> bool:
    """Whether it asks for a share of a card, or for a model."""
    return bool(task.gpu_share or task.gpu_models)


def matter(offer: Offer, waiting: Iterable[JobRecord]) -> bool:
    """Whether sums of GPUs say too little of a node: a job waits that asks for a share or for a model, or somebody has
    a share."""
    shared = any(share < WHOLE for held in offer.cards.values() for share, _ in held.values())
    return shared or any(particular(task) for record in waiting for task in record.tasks)


def by_card(offer: Offer) -> tuple[Cluster, dict[str, Cells]]:
    """The offer's cluster with nothing in use and its cards, and what each job holds, of each card, too."""
    known = [
        ((name, card.id), index, card)
        for name, index in offer.cluster.topology.node_index.items()
        for card in offer.nodes[name].cards
    ]
    capacity = np.array([[WHOLE] * len(known), [card.memory for _, _, card in known]], dtype=np.float64)
    column = {place: i for i, (place, _, _) in enumerate(known)}
    cards = Cards(column, np.array([index for _, index, _ in known], dtype=np.int64), capacity, capacity * 0)
    held = {
        name: {**cells, **_cells(offer.cards[name], cards)} if name in offer.cards else cells
        for name, cells in offer.held.items()
    }
    return replace(offer.cluster.emptied(), cards=cards), held


def _cells(held: HeldCards, cards: Cards) -> Cells:
    """Of cards that are there. All thousandths are all memory, too."""
    found: dict[tuple[int, int], float] = {}
    for place, (share, memory) in held.items():
        column = cards.column.get(place)
        if column is not None:
            memory = memory or (int(cards.capacity[1, column]) if share >= WHOLE else 0)
            found |= {
                cell: amount for cell, amount in (((CARD, column), share), ((CARD_MEMORY, column), memory)) if amount
            }
    return found


@dataclass(frozen=True, eq=False)
class CardTable:
    """Which cards suit which tasks, worked out once for each kind of task. ``cards``: whatever is used of them."""

    cards: Cards
    nodes: Mapping[str, NodeRecord]
    _suiting: dict[object, NDArray[np.bool_]] = field(default_factory=dict, init=False)

    @cached_property
    def known(self) -> list[tuple[str, Card]]:
        """Node and card of each column."""
        there = {(name, card.id): card for name, node in self.nodes.items() for card in node.cards}
        return [(place[0], there[place]) for place in self.cards.column]

    @cached_property
    def _first(self) -> dict[str, int]:
        """Node -> the column of its first card; the others follow it."""
        return {name: i for i, (name, _) in reversed([*enumerate(self.known)])}

    def suiting(self, task: Task) -> NDArray[np.bool_]:
        key = kind_of(task)
        if key not in self._suiting:
            self._suiting[key] = np.array([suits(card, task) for _, card in self.known], dtype=np.bool_)
        return self._suiting[key]

    def asked(self, task: Task) -> tuple[int, Integers]:
        """Of a card that the task gets: thousandths, and bytes of each, as held_of has it."""
        memory = _whole(self.cards.capacity[1])
        if not task.gpu_share:
            return WHOLE, memory
        share = memory * task.gpu_share // WHOLE
        return task.gpu_share, np.full_like(memory, task.gpu_memory) if task.gpu_memory else share

    def number(self, task: Task, cards: Cards) -> Integers:
        """How many such tasks each card has room for; whole, it is one GPU of the task's."""
        share, memory = self.asked(task)
        left = np.maximum(_whole(cards.capacity - cards.used), 0)
        found = left[0] // share
        by_memory = np.where(memory > 0, left[1] // np.maximum(memory, 1), found)
        return np.where(self.suiting(task), np.minimum(found, by_memory), 0)

    def narrowed(self, task: Task, problem: Problem, cards: Cards) -> Problem:
        """The problem with as much of each node's GPUs free as its cards can hold of such tasks."""
        cluster, count = problem.cluster, len(problem.cluster.topology.nodes)
        room = np.bincount(cards.node, self.number(task, cards), count) * (task.gpu_share / WHOLE or 1.0)
        there = np.bincount(cards.node, minlength=count) > 0
        free = cluster.node_capacity[GPU] - cluster.node_used[GPU]
        used = cluster.node_used.copy()
        used[GPU] = np.where(there, cluster.node_capacity[GPU] - np.minimum(free, room), used[GPU])
        return replace(problem, cluster=cluster.with_used(used, cluster.link_used))

    def named(self, tasks: Sequence[Task], plan: Plan, cards: Cards) -> Plan | None:
        """The plan with cards for its tasks: of those that suit and have room the fullest, the first of equals. None
        where there are too few."""
        left, found = _whole(cards.capacity - cards.used), []
        for task in tasks:
            node = plan.assignments[task.name]
            if not task.gpus or node not in self._first:
                continue
            columns = range(self._first[node], self._first[node] + len(self.nodes[node].cards))
            share, memory = self.asked(task)
            fitting = [
                (left[0, at], left[1, at], at)
                for at in columns
                if self.suiting(task)[at] and left[0, at] >= share and left[1, at] >= memory[at]
            ]
            chosen = [at for _, _, at in sorted(fitting)[: 1 if task.gpu_share else task.gpu]]
            if len(chosen) < (1 if task.gpu_share else task.gpu):
                return None
            for at in chosen:
                left[:, at] -= share, memory[at]
                found.append(PlannedCard(task.name, node, self.known[at][1].id, share, int(memory[at])))
        return replace(plan, cards=tuple(found))


def _whole(amounts: NDArray[np.float64]) -> Integers:
    return np.rint(amounts).astype(np.int64)
