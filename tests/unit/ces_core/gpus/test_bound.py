"""The upper bound is one, and is reached where it can be."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from gpu_tasks import gpu_nodes, gpu_tasks
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.gpus.bound import patterns, upper_bound
from ces_core.gpus.checker import Placed, faults
from ces_core.gpus.model import GpuNode, GpuTask
from ces_core.gpus.plan import plan


def test_patterns_are_all_to_which_nothing_can_be_added() -> None:
    sizes, supply = (810, 470, 230), (2, 2, 3)
    fitting = [
        each
        for each in product(*(range(count + 1) for count in supply))
        if sum(size * count for size, count in zip(sizes, each, strict=True)) <= 1000
    ]
    full = {
        each
        for each in fitting
        if not any(
            more != each and all(a <= b for a, b in zip(each, more, strict=True)) for more in fitting
        )
    }  # fmt: skip
    assert set(patterns(sizes, supply)) == full
    assert len(full) == len(list(patterns(sizes, supply)))


def test_too_many_patterns_are_refused() -> None:
    sizes = list(range(100, 20, -1))
    with pytest.raises(ValueError, match="more than 20000 patterns"):
        list(patterns(sizes, [9] * len(sizes)))


def test_what_is_scattered_is_not_counted() -> None:
    nodes = [GpuNode("a", 10_000, 1000, 2, "T4", 1000)]
    tasks = [GpuTask(f"t{i}", 100, 1, 1, 600) for i in range(4)]
    assert upper_bound(nodes, tasks).most == 2  # by milli alone it would be 3
    assert upper_bound(nodes, [*tasks, GpuTask("s", 100, 1, 1, 400)]).most == 3
    assert upper_bound(nodes, [GpuTask("w", 100, 1, 2, 1000), *tasks]).most == 2
    assert upper_bound(nodes, [GpuTask("c", 10_001, 1)]).most == 0
    assert upper_bound(nodes, [GpuTask("p", 1, 1, 1, 50, frozenset({"P100"}))]).most == 0


@settings(max_examples=25)
@given(gpu_nodes(most=2), gpu_tasks(most=5), st.integers(0, 3))
def test_no_plan_is_above_the_bound_and_small_ones_are_optimal(
    nodes: list[GpuNode], tasks: list[GpuTask], seed: int
) -> None:
    bound, best = upper_bound(nodes, tasks), optimum(nodes, tasks)
    found = plan(nodes, tasks, bound, np.random.default_rng(seed), rounds=2)
    assert faults(nodes, found) == []
    assert len({each.task for each in found}) == len(found) == best <= bound.most


def test_whole_cards_without_the_memory_that_is_asked_for_get_no_task() -> None:
    nodes = [GpuNode("n0", 0, 0, 3, "T4", 8000)]
    tasks = [GpuTask("t0", 0, 0, 1, 50, card_memory=200), GpuTask("t1", 0, 0, 2, 1000, card_memory=12_000)]
    found = plan(nodes, tasks, upper_bound(nodes, tasks), np.random.default_rng(0), rounds=2)
    assert faults(nodes, found) == []
    assert [each.task.name for each in found] == ["t0"]


def optimum(nodes: list[GpuNode], tasks: list[GpuTask]) -> int:
    """By trying everything."""
    best = 0
    states: list[tuple[int, tuple[Placed, ...]]] = [(0, ())]
    while states:
        at, placed = states.pop()
        best = max(best, len(placed))
        if at == len(tasks) or len(placed) + len(tasks) - at <= best:
            continue
        task = tasks[at]
        states.append((at + 1, placed))
        for place, node in enumerate(nodes):
            for cards in choices(task, node, place, placed):
                more = (*placed, Placed(task, place, cards))
                if not faults(nodes, more):
                    states.append((at + 1, more))
    return best


def choices(task: GpuTask, node: GpuNode, place: int, placed: tuple[Placed, ...]) -> list[tuple[int, ...]]:
    """Every card for a share; for whole cards the first free ones, since they are alike."""
    if not task.gpus:
        return [()]
    if task.milli < 1000:
        return [(card,) for card in range(node.cards)]
    used = {card for each in placed if each.node == place for card in each.cards}
    free = [card for card in range(node.cards) if card not in used]
    return [tuple(free[: task.gpus])] if len(free) >= task.gpus else []
