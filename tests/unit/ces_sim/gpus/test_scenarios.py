"""What is drawn for each scenario."""

from __future__ import annotations

import numpy as np
import pytest

from ces_core.gpus.model import GpuNode, GpuTask
from ces_sim.gpus.scenarios import CARD_MEMORY, SCENARIOS, Drawn, draw

NODES = [GpuNode(f"n{i:03}", 1000, 1000, 2, ("T4", "P100")[i % 3 == 0]) for i in range(150)]
TASKS = [GpuTask(f"t{i}", 1, 1, int(i % 4 > 0), (0, 470, 810, 1000)[i % 4]) for i in range(800)]


def drawn(name: str, seed: int = 0) -> Drawn:
    return draw(SCENARIOS[name], NODES, TASKS, np.random.default_rng(seed))


@pytest.mark.parametrize("name", SCENARIOS)
def test_64_hosts_and_a_stream_each_once(name: str) -> None:
    found, scenario = drawn(name), SCENARIOS[name]
    assert len({node.name for node in found.nodes}) == len(found.nodes) == 64
    assert len({task.name for task in found.tasks}) == len(found.tasks) == scenario.tasks
    assert {node.model for node in found.nodes} == set(scenario.models)
    assert all(node.card_memory == CARD_MEMORY[node.model] for node in found.nodes)
    assert {task.milli for task in found.tasks} == ({470, 810, 1000} if scenario.whole else {470, 810})
    assert drawn(name) == found != drawn(name, seed=1)


def test_hosts_and_tasks_are_those_of_the_generator() -> None:
    rng = np.random.default_rng(5)
    there = [node for node in NODES if node.model == "T4"]
    hosts = [there[i].name for i in rng.choice(len(there), 64, replace=False)]
    shared = [task for task in TASKS if task.milli in (470, 810)]
    stream = [shared[i].name for i in rng.choice(len(shared), 220, replace=False)]
    found = drawn("D1", 5)
    assert [node.name for node in found.nodes] == hosts
    assert [task.name for task in found.tasks] == stream


def test_memory_is_asked_in_proportion_to_the_smallest_card_but_loosely_in_d4() -> None:
    for name in ("D1", "D2"):
        assert all(task.card_memory == 15_109 * task.milli // 1000 for task in drawn(name).tasks)
    loose = drawn("D4").tasks
    assert all(task.card_memory <= 15_109 for task in loose)
    ratios = [task.card_memory / (15.109 * task.milli) for task in loose]
    assert min(ratios) < 0.75
    assert 1.2 < max(ratios) <= 1.3
    assert [task.name for task in loose] == [task.name for task in drawn("D1").tasks]


def test_too_few_are_named() -> None:
    with pytest.raises(ValueError, match="D1 needs 64 hosts, and there are 6"):
        draw(SCENARIOS["D1"], NODES[:10], TASKS, np.random.default_rng(0))
    with pytest.raises(ValueError, match="D5 needs 280 tasks, and there are 200"):
        draw(SCENARIOS["D5"], NODES, TASKS[:400], np.random.default_rng(0))
