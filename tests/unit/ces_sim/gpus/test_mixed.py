"""A load of tasks that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest

from ces_core.gpus.model import CARD, Asked, Fleet, GpuNode, GpuTask
from ces_sim.gpus.mixed import Placed, Visit, mixed, visits

NODES = [GpuNode("n", 10_000, 1000, 2)]
HALF, WHOLE = GpuTask("half", 1000, 100, 1, 500), GpuTask("whole", 1000, 100, 1, CARD)


@dataclass
class First:
    """Takes the first cards with room; keeps what it was shown."""

    seen: list[tuple[list[int], int]] = field(default_factory=list)

    def choose(self, fleet: Fleet, task: GpuTask, asked: Asked, running: Sequence[Asked]) -> Placed | None:
        self.seen.append((fleet.milli[0].tolist(), len(running)))
        free = np.flatnonzero(fleet.milli[0] >= task.milli)[: task.gpus]
        return (0, tuple(free.tolist())) if len(free) == task.gpus else None


def test_what_leaves_is_free_again_for_who_comes_then() -> None:
    coming = [Visit(0, 2, HALF), Visit(1, 9, WHOLE), Visit(1.5, 9, WHOLE), Visit(2, 9, WHOLE), Visit(3, 9, HALF)]
    decider = First()
    found = list(mixed(NODES, coming, decider))
    assert [each.placed for each in found] == [(0, (0,)), (0, (1,)), None, (0, (0,)), None]
    assert decider.seen == [([1000, 1000], 0), ([500, 1000], 1), ([500, 0], 2), ([1000, 0], 1), ([0, 0], 2)]
    assert [each.free for each in found] == [1, 0, 0, 0, 0]
    assert found[0].imbalance == 0, "there is one node"


def test_as_much_is_asked_for_as_the_load_says() -> None:
    rng = np.random.default_rng(0)
    coming = visits([HALF, WHOLE], 100 * CARD, 0.8, 50.0, rng)
    asked = sum(each.task.total * each.stays for each in coming) / 50.0
    assert asked == pytest.approx(80 * CARD, rel=0.1)
    assert all(one.at < other.at for one, other in pairwise(coming))
    assert coming == visits([HALF, WHOLE], 100 * CARD, 0.8, 50.0, np.random.default_rng(0))
    with pytest.raises(ValueError, match="no task asks for a GPU"):
        visits([GpuTask("cpu", 1, 1)], 1000, 1.0, 1.0, rng)
