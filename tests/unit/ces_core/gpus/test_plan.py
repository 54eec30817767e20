"""Plans that are made of the bound's patterns, and then improved."""

from __future__ import annotations

import numpy as np

from ces_core.gpus.bound import upper_bound
from ces_core.gpus.checker import faults
from ces_core.gpus.model import GpuNode, GpuTask
from ces_core.gpus.plan import Plan, begin, fill, improve, plan

NODES = [GpuNode(f"n{i}", 4000, 65_536, 2, "T4", 1000) for i in range(6)]


def shares(*sizes: int, cpu: int = 1000) -> list[GpuTask]:
    return [GpuTask(f"t{i}", cpu, 1024, 1, size, card_memory=size) for i, size in enumerate(sizes)]


def test_patterns_are_realised() -> None:
    tasks = shares(*[600] * 12, *[400] * 12)
    bound = upper_bound(NODES, tasks)
    found = Plan(NODES, tasks)
    begin(found, bound)
    assert len(found.at) == bound.most == 24
    assert faults(NODES, found.placed()) == []


def test_cpu_that_the_patterns_do_not_see_is_repaired() -> None:
    tasks = [*shares(*[470] * 12, cpu=300), *(GpuTask(f"c{i}", 1700, 1, 1, 470, card_memory=470) for i in range(12))]
    bound = upper_bound(NODES, tasks)
    found = plan(NODES, tasks, bound, np.random.default_rng(1))
    assert faults(NODES, found) == []
    assert len(found) == bound.most == 24


def test_whole_cards_and_shares_side_by_side() -> None:
    tasks = [GpuTask(f"w{i}", 1000, 1, 2, 1000, card_memory=1000) for i in range(5)] + shares(500, 500, 400)
    bound = upper_bound(NODES, tasks)
    found = plan(NODES, tasks, bound, np.random.default_rng(1))
    assert faults(NODES, found) == []
    assert len(found) == bound.most == 8


def test_no_round_loses_a_task() -> None:
    rng = np.random.default_rng(3)
    tasks = shares(*(int(size) for size in rng.choice([160, 230, 470, 650, 810], 40)), cpu=500)
    found = Plan(NODES, tasks)
    fill(found)
    for _ in range(10):
        before = len(found.at)
        improve(found, rng)
        assert len(found.at) >= before
    assert faults(NODES, found.placed()) == []
    assert all(0 <= left <= 1000 for left in found.fleet.milli.ravel())
