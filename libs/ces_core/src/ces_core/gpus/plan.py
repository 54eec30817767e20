"""A plan for tasks that are all known beforehand: as many as possible placed, which no decider in turn can expect.

It starts from the answer of the upper bound and improves it by ruin and recreate: a few nodes are emptied, and HiGHS
fills them again from their tasks and all that wait. More tasks count first, then smaller ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from ces_core.gpus.bound import Bound, Kind, class_of, kind_of
from ces_core.gpus.checker import Placed
from ces_core.gpus.choice import Chooser
from ces_core.gpus.fragmentation import typical
from ces_core.gpus.milp import NamedRows
from ces_core.gpus.model import CARD, Asked, Fleet, GpuNode, GpuTask, Models
from ces_core.gpus.scores import Policy

EMPTIED = 4
"""Nodes at a time."""
STEP_S = 2.0
FEWER = 1e-3
"""What a card less counts beside a task."""


class Plan:
    """``at``: node and cards of each task, by its place in the list; those that wait are absent."""

    def __init__(self, nodes: Sequence[GpuNode], tasks: Sequence[GpuTask]) -> None:
        self.nodes, self.tasks = nodes, tasks
        models = Models()
        self.fleet: Fleet = models.fleet(nodes)
        self.asked: list[Asked] = [models.asked(task) for task in tasks]
        self.at: dict[int, tuple[int, tuple[int, ...]]] = {}

    def place(self, task: int, node: int, cards: tuple[int, ...]) -> None:
        self.fleet.place(node, cards, self.asked[task])
        self.at[task] = node, cards

    def remove(self, task: int) -> None:
        self.fleet.remove(*self.at.pop(task), self.asked[task])

    def fits(self, task: int, node: int) -> bool:
        asked = self.asked[task]
        return bool(self.fleet.cpu[node] >= asked.cpu and self.fleet.memory[node] >= asked.memory)

    def placed(self) -> list[Placed]:
        """As the checker has it."""
        return [Placed(self.tasks[task], node, cards) for task, (node, cards) in sorted(self.at.items())]


def plan(
    nodes: Sequence[GpuNode], tasks: Sequence[GpuTask], bound: Bound, rng: np.random.Generator, rounds: int = 60
) -> list[Placed]:
    """Ends early where the bound is reached."""
    found = Plan(nodes, tasks)
    begin(found, bound)
    fill(found)
    for _ in range(rounds):
        if len(found.at) >= bound.most:
            break
        improve(found, rng)
    return found.placed()


def begin(found: Plan, bound: Bound) -> None:
    """Cards get the bound's patterns, class by class; each task goes to the slot of its size in its class where most
    CPU and memory of the card are left."""
    waiting: dict[Kind, list[int]] = defaultdict(list)
    for i, task in sorted(enumerate(found.tasks), key=lambda each: -each[1].card_memory):
        waiting[kind_of(task)].append(i)  # of one kind those with least memory go first
    for where, kinds in bound.kinds.items():
        mine = [i for i, node in enumerate(found.nodes) if class_of(node) == where]
        chosen = [waiting[kind].pop() for kind, count in kinds.items() for _ in range(count)]
        for at in sorted(chosen, key=lambda i: -found.asked[i].gpus):
            if found.asked[at].milli == CARD:
                _whole(found, at, mine)
        shares = [each for each, count in bound.patterns[where] for _ in range(count)]
        slots: dict[int, list[tuple[int, int]]] = defaultdict(list)
        free = [(i, card) for card in range(where[2]) for i in mine if found.fleet.milli[i, card] == CARD]
        for (node, card), sizes in zip(free, sorted(shares, key=sum, reverse=True), strict=False):
            for size in sizes:
                slots[size].append((node, card))
        for at in sorted(chosen, key=lambda i: (-_density(found.tasks[i]), -found.asked[i].cpu)):
            _into_slot(found, at, slots[found.asked[at].milli])


def _whole(found: Plan, task: int, mine: Sequence[int]) -> None:
    asked = found.asked[task]
    for node in sorted(mine, key=lambda i: (int((found.fleet.milli[i] == CARD).sum()), i)):
        free = np.flatnonzero((found.fleet.milli[node] == CARD) & (found.fleet.card_memory[node] >= asked.card_memory))
        if found.fits(task, node) and len(free) >= asked.gpus:
            return found.place(task, node, tuple(int(card) for card in free[: asked.gpus]))
    return None


def _into_slot(found: Plan, task: int, slots: list[tuple[int, int]]) -> None:
    asked = found.asked[task]
    good = [slot for slot in slots if found.fits(task, slot[0]) and found.fleet.card_memory[slot] >= asked.card_memory]
    if task not in found.at and good:
        slot = max(good, key=lambda at: _left(found, *at))
        slots.remove(slot)
        found.place(task, slot[0], (slot[1],))


def _density(task: GpuTask) -> float:
    """MiB to a milli of its card, rounded, so that those who ask for memory in proportion are alike."""
    return round(task.card_memory / max(1, task.milli), 1)


def _left(found: Plan, node: int, card: int) -> float:
    """Of CPU and of the card's memory, as shares, together."""
    there = found.nodes[node]
    cpu = float(found.fleet.cpu[node]) / max(1, there.cpu)
    return cpu + float(found.fleet.card_memory[node, card]) / max(1, there.card_memory)


def fill(found: Plan) -> None:
    """Those that wait go where FGD puts them, the small ones first."""
    chooser = Chooser(Policy.FGD, found.fleet, typical(found.asked), np.random.default_rng(0))
    waiting = [i for i in range(len(found.tasks)) if i not in found.at]
    for task in sorted(waiting, key=lambda i: found.tasks[i].total):
        if (chosen := chooser.choose(found.asked[task])) is not None:
            chooser.place(*chosen, found.asked[task])
            found.at[task] = chosen


def improve(found: Plan, rng: np.random.Generator) -> None:
    """Empties a few nodes, those with much unused more often, and fills them again as well as HiGHS can."""
    idle = found.fleet.milli.sum(axis=1) + 50.0
    some = rng.choice(len(found.nodes), min(EMPTIED, len(found.nodes)), replace=False, p=idle / idle.sum())
    nodes = [int(node) for node in some]
    before = {task: place for task, place in found.at.items() if place[0] in nodes}
    for task in before:
        found.remove(task)
    free = [task for task in range(len(found.tasks)) if task not in found.at]
    after = _filled(found, nodes, free)
    for task, (node, cards) in (before if after is None or len(after) < len(before) else after).items():
        found.place(task, node, cards)


def _size(found: Plan, task: int, node: int) -> float:
    """In cards of the node: milli and memory, half each."""
    memory = found.tasks[task].gpus * found.tasks[task].card_memory / max(1, found.nodes[node].card_memory)
    return (found.tasks[task].total / CARD + memory) / 2


def _filled(found: Plan, nodes: list[int], free: list[int]) -> dict[int, tuple[int, tuple[int, ...]]] | None:
    """Where the free tasks go on these nodes, all empty; None where HiGHS has no answer in time. Of tasks with whole
    cards a node has a column, of shares each card."""
    columns: list[tuple[int, int, int]] = []
    for task in free:
        asked = found.asked[task]
        for node in nodes:
            if not found.fits(task, node) or asked.gpus > found.fleet.cards[node]:
                continue
            if asked.models and not asked.models & int(found.fleet.model[node]):
                continue
            if asked.gpus and asked.card_memory > found.nodes[node].card_memory:
                continue
            share = asked.gpus and asked.milli < CARD
            columns += [(task, node, card) for card in (range(int(found.fleet.cards[node])) if share else (-1,))]
    if not columns:
        return {}
    wide = found.fleet.milli.shape[1]
    gain = np.zeros(len(columns) + len(nodes) * wide)
    gain[: len(columns)] = [1 - FEWER * _size(found, task, node) for task, node, _ in columns]
    programme = NamedRows(gain, np.ones(len(gain)))
    for i, (task, node, card) in enumerate(columns):
        asked = found.asked[task]
        programme.count(("task", task), 1, i, 1)
        programme.count(("cpu", node), float(found.fleet.cpu[node]), i, asked.cpu)
        programme.count(("memory", node), float(found.fleet.memory[node]), i, asked.memory)
        if card >= 0:
            shared = len(columns) + nodes.index(node) * wide + card  # 1 where the card is for shares
            programme.count(("milli", node, card), 0, i, asked.milli)
            programme.count(("milli", node, card), 0, shared, -CARD)
            programme.count(("video", node, card), float(found.fleet.card_memory[node, card]), i, asked.card_memory)
            programme.count(("cards", node), float(found.fleet.cards[node]), shared, 1)
        elif asked.gpus:
            programme.count(("cards", node), float(found.fleet.cards[node]), i, asked.gpus)
    values = programme.solve(STEP_S).values
    if values is None:
        return None
    chosen = [columns[i] for i in np.flatnonzero(values[: len(columns)])]
    placed = {task: (node, (card,)) for task, node, card in chosen if card >= 0}
    used = {(node, card) for node, (card,) in placed.values()}
    found_all: dict[int, tuple[int, tuple[int, ...]]] = dict(placed)
    for task, node, card in chosen:
        if card < 0:
            unused = [i for i in range(int(found.fleet.cards[node])) if (node, i) not in used]
            cards = tuple(unused[: found.asked[task].gpus])
            used |= {(node, i) for i in cards}
            found_all[task] = node, cards
    return found_all
