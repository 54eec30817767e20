"""How many of a list of tasks any decider can place at most: a mixed-integer programme over patterns of cards.

A pattern is a set of shares that fit on one card together. Nodes alike are one class: cards get patterns one by one,
while CPU and memory of a class are counted in sum, and memory of cards not at all. So the optimum, and HiGHS's bound on
it, is never less than what is possible.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ces_core.gpus.milp import NamedRows
from ces_core.gpus.model import CARD, GpuNode, GpuTask

MOST_PATTERNS = 20_000
Pattern = tuple[int, ...]
"""How many shares of each size."""
NodeClass = tuple[int, int, int, str]
"""CPU, memory, cards and model."""
Kind = tuple[int, int, int, int, frozenset[str]]
"""CPU, memory, GPUs, milli and models."""


@dataclass(frozen=True)
class Bound:
    """``most``: tasks that can be placed at most. In the best answer found, a start for plans, each class of nodes has
    ``kinds``, the number of tasks of each kind, and ``patterns``, shares in milli with the number of cards that have
    them."""

    most: int
    kinds: Mapping[NodeClass, Mapping[Kind, int]]
    patterns: Mapping[NodeClass, Sequence[tuple[tuple[int, ...], int]]]


def class_of(node: GpuNode) -> NodeClass:
    return node.cpu, node.memory, node.cards, node.model


def kind_of(task: GpuTask) -> Kind:
    return task.cpu, task.memory, task.gpus, task.milli, task.models


def upper_bound(nodes: Sequence[GpuNode], tasks: Sequence[GpuTask], limit_s: float = 20.0) -> Bound:
    """Raises ValueError where there are more than MOST_PATTERNS, RuntimeError where HiGHS has no bound in time."""
    classes, kinds = Counter(map(class_of, nodes)), Counter(map(kind_of, tasks))
    shares = Counter(task.milli for task in tasks if task.gpus and task.milli < CARD)
    sizes = sorted(shares, reverse=True)
    found = list(patterns(sizes, [shares[size] for size in sizes]))
    places = {each: i for i, each in enumerate((where, kind) for where in classes for kind in kinds)}
    cards = {
        each: len(places) + i
        for i, each in enumerate((where, place) for where in classes if where[2] for place in range(len(found)))
    }
    gain = np.zeros(len(places) + len(cards))
    gain[: len(places)] = 1.0
    programme = NamedRows(gain, np.full(len(gain), float(len(tasks) + sum(node.cards for node in nodes))))
    for where, count in classes.items():
        _count_class(programme, where, count, kinds, {kind: places[where, kind] for kind in kinds})
        for i, each in enumerate(found if where[2] else ()):
            programme.count(("cards", where), float(count * where[2]), cards[where, i], 1.0)
            for at, size in enumerate(sizes):
                if each[at]:
                    programme.count(("size", where, size), 0.0, cards[where, i], -float(each[at]))
    for (_, kind), place in places.items():
        programme.count(("kind", kind), float(kinds[kind]), place, 1.0)
    solution = programme.solve(limit_s)
    if not math.isfinite(solution.most):
        raise RuntimeError(f"HiGHS has no bound after {limit_s:g} s")
    values = np.zeros(len(gain), np.int64) if solution.values is None else solution.values
    return Bound(
        min(len(tasks), math.floor(solution.most + 1e-6)),
        {where: {kind: int(n) for kind in kinds if (n := values[places[where, kind]])} for where in classes},
        {
            where: [
                (tuple(size for size, count in zip(sizes, each, strict=True) for _ in range(count)), int(n))
                for i, each in enumerate(found)
                if where[2] and (n := values[cards[where, i]])
            ]
            for where in classes
        },
    )


def _count_class(
    programme: NamedRows, where: NodeClass, count: int, kinds: Mapping[Kind, int], places: Mapping[Kind, int]
) -> None:
    """What tasks take of the nodes of a class."""
    cpu, memory, per_node, model = where
    for kind, place in places.items():
        fits = kind[0] <= cpu and kind[1] <= memory and kind[2] <= per_node
        allowed = not kind[2] or not kind[4] or model in kind[4]
        programme.upper[place] = kinds[kind] if fits and allowed else 0
        programme.count(("cpu", where), float(count * cpu), place, float(kind[0]))
        programme.count(("memory", where), float(count * memory), place, float(kind[1]))
        if kind[3] == CARD:
            programme.count(("cards", where), float(count * per_node), place, float(kind[2]))
        elif kind[2]:
            programme.count(("size", where, kind[3]), 0.0, place, 1.0)


def patterns(sizes: Sequence[int], supply: Sequence[int]) -> Iterator[Pattern]:
    """Those to which none of these sizes (descending) can be added, with at most ``supply`` of each. Raises ValueError
    where there are too many."""
    found = 0
    open_ends: list[tuple[Pattern, int, int]] = [((), CARD, CARD + 1)]
    while open_ends:
        taken, left, unused = open_ends.pop()
        at = len(taken)
        if at == len(sizes):
            if left < unused:
                found += 1
                if found > MOST_PATTERNS:
                    raise ValueError(f"more than {MOST_PATTERNS} patterns of shares on a card")
                yield taken
            continue
        most = min(supply[at], left // sizes[at])
        for count in range(most + 1):
            smaller = min(unused, sizes[at]) if count < supply[at] else unused
            open_ends.append(((*taken, count), left - count * sizes[at], smaller))
