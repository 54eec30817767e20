"""Where a task fits among clusters, and which host and cards it gets."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_tasks import asked, gpu_nodes, gpu_tasks
from hypothesis import given

from ces_core.gpus.clusters import Clusters
from ces_core.gpus.model import CARD, Fleet, GpuNode, GpuTask, Models


def fleet(*left: tuple[int, ...], cpu: tuple[int, ...] | None = None) -> Fleet:
    """Hosts with two cards each of which that much is free."""
    found = Models().fleet([GpuNode(f"h{i}", 8000, 4096, 2, "T4", 1000) for i in range(len(left))])
    found.milli[:] = left
    if cpu:
        found.cpu[:] = cpu
    return found


def test_the_host_with_the_fullest_card_that_takes_it() -> None:
    clusters = Clusters.of(fleet((1000, 700), (600, 300), (1000, 1000), (400, 400)), 2)
    assert clusters.hosts(asked(1, 1, 500)).tolist() == [1, 2]
    assert clusters.hosts(asked(1, 1, 300)).tolist() == [1, 3]
    assert clusters.hosts(asked(1, 1, 650)).tolist() == [0, 2]
    assert clusters.hosts(asked(1, 2)).tolist() == [-1, 2]
    assert clusters.hosts(asked(8001, 1, 500)).tolist() == [-1, -1]


def test_of_equal_cards_the_host_with_least_cpu_and_then_the_first() -> None:
    clusters = Clusters.of(fleet((500, 0), (500, 0), (500, 0), (500, 0), cpu=(4000, 3000, 4000, 4000)), 2)
    assert clusters.hosts(asked(1, 1, 500)).tolist() == [1, 2]
    assert clusters.hosts(asked(3500, 1, 500)).tolist() == [0, 2]


def test_cards_of_a_host() -> None:
    clusters = Clusters.of(fleet((800, 700), (1000, 1000)), 2)
    assert clusters.cards(0, asked(1, 1, 600)) == (1,)
    assert clusters.cards(0, asked(1, 1, 750)) == (0,)
    assert clusters.cards(1, asked(1, 2)) == (0, 1)
    assert clusters.cards(1, asked(1, 0, 0)) == ()


def test_sums_hide_what_is_scattered() -> None:
    clusters = Clusters.of(fleet((400, 400), (400, 400)), 2)
    task = asked(1, 1, 500)
    assert clusters.seem_to_fit(task).tolist() == [True]
    assert clusters.hosts(task).tolist() == [-1]


def test_what_is_used_is_a_share() -> None:
    clusters = Clusters.of(fleet((1000, 1000), (1000, 1000)), 2)
    clusters.fleet.place(1, (0,), asked(4000, 1, 500, memory=2048, card_memory=250))
    np.testing.assert_allclose(clusters.used(), [[4000 / 16_000, 2048 / 8192, 250 / 4000, 500 / 4000]])


def test_clusters_need_all_resources() -> None:
    with pytest.raises(ValueError, match="3 hosts are no clusters of 2"):
        Clusters.of(fleet((1, 1), (1, 1), (1, 1)), 2)
    with pytest.raises(ValueError, match="every cluster needs CPU, memory and cards with memory"):
        Clusters.of(Models().fleet([GpuNode("n", 1, 1)]), 1)


@given(gpu_nodes(), gpu_tasks())
def test_a_host_is_named_where_and_only_where_the_task_fits(nodes: list[GpuNode], tasks: list[GpuTask]) -> None:
    models = Models()
    free = models.fleet(nodes)
    clusters = Clusters(free, 1, np.ones((len(nodes), 4)))
    for task in map(models.asked, tasks):
        hosts = clusters.hosts(task)
        for place, node in enumerate(nodes):
            good = (free.milli[place] >= task.milli) & (free.card_memory[place] >= task.card_memory)
            good &= np.arange(free.milli.shape[1]) < node.cards
            there = free.cpu[place] >= task.cpu and free.memory[place] >= task.memory
            there &= not task.gpus or good.sum() >= task.gpus
            there &= not task.gpus or not task.models or bool(task.models & int(free.model[place]))
            assert hosts[place] == (place if there else -1)
            if there:
                cards = clusters.cards(place, task)
                assert len(set(cards)) == len(cards) == task.gpus
                assert all(good[card] for card in cards)
        if (fitting := np.flatnonzero(hosts >= 0)).size:
            host = int(hosts[fitting[0]])
            free.place(host, clusters.cards(host, task), task)
    assert free.milli.min() >= 0
    assert free.milli.max() <= CARD
