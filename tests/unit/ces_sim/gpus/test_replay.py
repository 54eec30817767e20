"""A growing load on one cluster."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from gpu_tasks import gpu_nodes, gpu_tasks
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.gpus.checker import Placed, faults
from ces_core.gpus.fragmentation import fragmented, typical
from ces_core.gpus.model import GpuNode, GpuTask, Models
from ces_core.gpus.scores import Policy
from ces_sim.gpus.replay import replay, stream

NODES = [GpuNode(f"n{i}", 16_000, 65_536, 2, "T4") for i in range(4)]
TASKS = [GpuTask(f"t{i}", 1000, 1024, 1, milli) for i, milli in enumerate((320, 470, 810, 1000))]


def test_all_tasks_come_once_and_then_some_again() -> None:
    tasks = stream(TASKS, 8000, 1.3, np.random.default_rng(1))
    assert set(tasks[:4]) == set(TASKS)
    asked = sum(task.total for task in tasks)
    assert 10_400 - 1000 < asked <= 10_400


def test_where_they_ask_for_too_much_some_do_not_come() -> None:
    tasks = stream(TASKS, 1500, 1.0, np.random.default_rng(1))
    assert sum(task.total for task in tasks) <= 1500
    assert max(Counter(tasks).values()) == 1


def test_without_gpu_there_is_no_load() -> None:
    with pytest.raises(ValueError, match="no task asks for a GPU"):
        stream([GpuTask("t", 1, 1)], 1000, 1.0, np.random.default_rng(1))


def test_every_policy_is_asked_the_same() -> None:
    runs = [[arrival.task for arrival in replay(NODES, TASKS, policy, 1.3, 7)] for policy in Policy]
    assert all(run == runs[0] for run in runs)
    assert [arrival.task for arrival in replay(NODES, TASKS, Policy.FGD, 1.3, 8)] != runs[0]


@settings(max_examples=40)
@given(gpu_nodes(), gpu_tasks(), st.sampled_from(Policy), st.integers(0, 9))
def test_what_is_told_is_what_is_there(nodes: list[GpuNode], tasks: list[GpuTask], policy: Policy, seed: int) -> None:
    placed: list[Placed] = []
    models = Models()
    fleet = models.fleet(nodes)
    usual = typical(models.asked(task) for task in tasks)
    arrived = allocated = 0
    for arrival in replay(nodes, tasks, policy, 1.0, seed):
        arrived += arrival.task.total
        if arrival.placed is not None:
            placed.append(Placed(arrival.task, *arrival.placed))
            fleet.place(*arrival.placed, models.asked(arrival.task))
            allocated += arrival.task.total
        assert (arrival.arrived, arrival.allocated, arrival.idle) == (arrived, allocated, int(fleet.milli.sum()))
        assert arrival.fragmented == pytest.approx(fragmented(fleet, usual))
    assert faults(nodes, placed) == []
