"""What a learned policy sees of clusters, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_tasks import asked
from numpy.testing import assert_allclose

from ces_core.gpus.clusters import Clusters, wanted
from ces_core.gpus.model import GpuNode, Models
from ces_core.gpus.rules import room_for
from ces_core.gpus.sight import HOST, PRESSURE, SUMS, Usual, amounts, look

SMALL, LARGE = asked(1000, 1, 300, memory=10, card_memory=30), asked(2000, 1, 800, memory=20, card_memory=80)


def clusters() -> Clusters:
    nodes = [GpuNode(f"n{i}", 4000, 100, 1, "T4", 100) for i in range(4)]
    return Clusters.of(Models().fleet(nodes), 2)


def seen(found: Clusters, task: tuple[int, ...], more: int = 10) -> dict[str, np.ndarray]:
    usual = Usual.of([SMALL, SMALL, LARGE])
    shown = look(found.fleet, 2, found.total[None], np.array([task], np.int64), [more], usual)
    assert shown.clusters.shape == (1, 2, len(SUMS) + len(HOST))
    return {
        "free": shown.free[0], "hosts": shown.hosts[0], "task": shown.task[0],
        **{name: shown.clusters[0, :, i] for i, name in enumerate((*SUMS, *HOST))},
    }  # fmt: skip


def test_what_the_host_would_have_left() -> None:
    found = clusters()
    found.fleet.place(0, (0,), SMALL)
    shown = seen(found, SMALL)
    assert shown["hosts"].tolist() == found.hosts(SMALL).tolist() == [0, 2]
    assert_allclose(shown["free"], found.free())
    assert_allclose(shown["milli left of the card"], [0.4, 0.7])
    assert_allclose(shown["cpu left of the host"], [0.02, 0.03])
    assert_allclose(shown["memory left of the card"], np.array([40, 70]) / 16_280)
    assert_allclose(shown["whole cards"], [0.5, 1.0])
    # Before, 700 milli are of no use to the large task alone, a third of all; then 400 are. On the free card none is
    # lost before, and 700 to the large task after.
    assert_allclose(shown["milli newly of no use"], [(0.4 - 0.7) / 3, 0.7 / 3], atol=1e-6)


def test_where_it_does_not_fit() -> None:
    found = clusters()
    for host in (0, 1):
        found.fleet.place(host, (0,), LARGE)
    shown = seen(found, LARGE)
    assert shown["hosts"].tolist() == [-1, 2]
    assert shown["fits"].tolist() == [0, 1]
    assert shown["milli left of the card"][0] == 0


@pytest.mark.parametrize(("more", "expected"), [(10, 6000 / 3 * 1), (0, 0.0)])
def test_smaller_tasks_to_come(more: int, expected: float) -> None:
    found = clusters()
    found.fleet.place(0, (0,), LARGE)
    shown = seen(found, LARGE, more)
    room = room_for(np.array([300, 300]), found.fleet.milli)
    assert room == 3000  # 200 milli are too little for the small ones
    pressure = (800 + expected) / room if expected else 0.0
    assert shown["task"][PRESSURE] == pytest.approx(pressure)
    assert shown["task"][PRESSURE - 1] == pytest.approx((more + 1) / 100)
    assert shown["task"][PRESSURE + 1] == pytest.approx((800 + more * 1400 / 3) / 3200)


def test_none_is_smaller_than_the_smallest() -> None:
    assert seen(clusters(), SMALL)["task"][PRESSURE] == 0.0


def test_amounts_are_what_tasks_want_of_a_cluster() -> None:
    tasks = np.array([SMALL, LARGE, asked(1, 2)], np.int64)
    assert amounts(tasks).tolist() == [wanted(each).tolist() for each in (SMALL, LARGE, asked(1, 2))]
