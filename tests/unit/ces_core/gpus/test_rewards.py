"""Both readings of the reward, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_tasks import asked

from ces_core.gpus.clusters import Clusters
from ces_core.gpus.model import GpuNode, Models
from ces_core.gpus.rewards import WRONG, Reading, rewards

TASK = asked(1000, 1, 100, memory=100, card_memory=100)
"""A tenth of everything on each of the clusters below."""


def clusters(*used: int) -> Clusters:
    """Single hosts, of each of whose resources so many tenths are used."""
    fleet = Models().fleet([GpuNode(f"h{i}", 10_000, 1000, 1, "T4", 1000) for i in range(len(used))])
    found = Clusters.of(fleet, 1)
    for host, tenths in enumerate(used):
        fleet.place(host, (0,), asked(1000 * tenths, 1, 100 * tenths, memory=100 * tenths, card_memory=100 * tenths))
    return found


def test_in_thought_the_fullest_that_takes_it_earns_most() -> None:
    # with the task: 0.1, 0.4, 0.6 of those it fits on; the last one is full
    found = rewards(clusters(0, 3, 5, 10), TASK, Reading.THOUGHT)
    assert found == pytest.approx([-10.0, 10 * (0.3 / 0.5 - 1), 0.0, WRONG, WRONG])


def test_afterwards_the_chosen_one_is_among_all() -> None:
    found = rewards(clusters(0, 3, 5, 10), TASK, Reading.AFTER)
    # chosen, least and most afterwards: 0.1 of 0.1..1, 0.4 of 0..1, 0.6 of 0..1
    assert found == pytest.approx([-10.0, -6.0, -4.0, WRONG, WRONG])


def test_afterwards_steady_levels_earn_most_and_in_thought_piles() -> None:
    even, fullest = clusters(2, 2, 3), 2
    assert rewards(even, asked(2000, 1, 200, memory=200, card_memory=200), Reading.AFTER)[0] == 0.0
    assert rewards(even, TASK, Reading.THOUGHT)[fullest] == 0.0
    assert rewards(even, TASK, Reading.THOUGHT)[0] == -10.0


def test_equal_levels_are_the_least() -> None:
    assert rewards(clusters(4, 4), TASK, Reading.THOUGHT).tolist() == [-10.0, -10.0, WRONG]
    assert rewards(clusters(4), TASK, Reading.AFTER).tolist() == [-10.0, WRONG]


@pytest.mark.parametrize("reading", Reading)
def test_waiting_is_right_where_it_fits_nowhere(reading: Reading) -> None:
    assert rewards(clusters(10, 10), TASK, reading).tolist() == [WRONG, WRONG, 0.0]
    assert np.all(rewards(clusters(10, 0), TASK, reading) <= 0)
