"""Which cluster each rule takes."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_tasks import asked, gpu_tasks
from hypothesis import given
from hypothesis import strategies as st

from ces_core.gpus.clusters import DELAY, Clusters
from ces_core.gpus.model import GpuNode, GpuTask, Models
from ces_core.gpus.rewards import Reading, rewards
from ces_core.gpus.rules import CLUSTER_RULES, ByOrder, Outlook, Refuse, first, room_for

TASK = asked(1000, 1, 500, memory=100, card_memory=500)


def clusters(*left: tuple[int, int], cpu: tuple[int, ...] = ()) -> Clusters:
    """Single hosts with two cards, each with that much milli and MiB free."""
    fleet = Models().fleet([GpuNode(f"h{i}", 10_000, 1000, 2, "T4", 1000) for i in range(len(left))])
    found = Clusters.of(fleet, 1)
    fleet.milli[:] = left
    fleet.card_memory[:] = left
    if cpu:
        fleet.cpu[:] = cpu
    return found


def outlook(more: int = 0, sizes: tuple[int, ...] = (500,)) -> Outlook:
    return Outlook(more, np.array(sizes, np.int64), np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rule", "taken"),
    [
        ("greedy", 1),  # the first where it fits
        ("best-fit", 2),  # the fullest where it fits
        ("expert", 2),
        ("spread", 3),
        ("greedy-blind", 0),  # 400 + 400 seem enough
        ("best-fit-blind", 0),
        ("greedy-retry", 1),
        ("best-fit-retry", 2),
    ],
)
def test_who_takes_which(rule: str, taken: int) -> None:
    there = clusters((400, 400), (900, 900), (500, 400), (1000, 1000))
    assert CLUSTER_RULES[rule].choose(there, TASK, outlook()) == taken


def test_utilization_takes_what_is_alike() -> None:
    # asked: CPU 0.1, memory 0.1, cards 0.25; the second one has little CPU beside much GPU
    there = clusters((1000, 1000), (1000, 1000), cpu=(10_000, 2000))
    assert CLUSTER_RULES["utilization"].choose(there, TASK, outlook()) == 1


def test_random_takes_any_where_it_fits() -> None:
    there, one = clusters((400, 400), (900, 900), (500, 400)), outlook()
    assert {CLUSTER_RULES["random"].choose(there, TASK, one) for _ in range(50)} == {1, 2}
    assert {CLUSTER_RULES["random-blind"].choose(there, TASK, one) for _ in range(50)} == {0, 1, 2}


@pytest.mark.parametrize("rule", CLUSTER_RULES)
def test_where_there_is_nothing_it_waits(rule: str) -> None:
    assert CLUSTER_RULES[rule].choose(clusters((100, 100), (0, 0)), TASK, outlook()) == DELAY


def test_a_large_task_waits_where_small_ones_will_need_the_room() -> None:
    there, large = clusters((1000, 1000)), asked(1, 1, 810)
    assert Refuse().choose(there, large, outlook(3, (400, 810))) == 0  # 600 expected
    assert Refuse().choose(there, large, outlook(6, (400, 810))) == DELAY  # 1200 of 1800
    assert Refuse().choose(there, asked(1, 1, 400), outlook(60, (400, 810))) == 0  # none are smaller


def test_room_is_counted_by_what_fits_on_it() -> None:
    left = np.array([[1000, 300], [500, 0]])
    assert room_for(np.array([400, 600]), left) == 1000 + 0 + 500 / 2
    assert room_for(np.array([2000]), left) == 1000
    assert room_for(np.array([], np.int64), left) == 1800


@given(gpu_tasks(), st.integers(0, 9))
def test_rules_that_see_cards_are_never_wrong_and_tries_without_end_see_them(tasks: list[GpuTask], seed: int) -> None:
    models = Models()
    there = Clusters.of(models.fleet([GpuNode(f"h{i}", 8000, 8192, 2, "T4", 12_000) for i in range(6)]), 2)
    for task in map(models.asked, tasks):
        hosts = there.hosts(task)
        for name in ("random", "greedy", "best-fit", "utilization", "expert", "spread"):
            found = CLUSTER_RULES[name].choose(there, task, outlook())
            assert found == DELAY if (hosts < 0).all() else hosts[found] >= 0
        patient = ByOrder(first, blind=True, tries=there.count).choose(there, task, outlook())
        aware = CLUSTER_RULES["greedy"].choose(there, task, outlook())
        assert patient == aware or (aware == DELAY and hosts[patient] < 0)
        expert = CLUSTER_RULES["expert"].choose(there, task, outlook())
        if expert != DELAY:
            fitting = rewards(there, task, Reading.THOUGHT)
            assert fitting[expert] == fitting.max()
            there.fleet.place(int(hosts[expert]), there.cards(int(hosts[expert]), task), task)
