"""What the shipped policies say of nodes on which one resource matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ces_core.amounts.policy import SHIPPED, load_amounts_policy
from ces_core.amounts.schema import CELLS, INPUTS, MOST
from ces_core.amounts.settings import SLOTS
from ces_core.amounts.single import LARGEST, NodeUnits, advised

EMPTY = [NodeUnits(16, 16)] * 4


@pytest.fixture(params=sorted(SHIPPED))
def policy(request: pytest.FixtureRequest) -> Any:
    return load_amounts_policy(SHIPPED[request.param])


def test_a_job_gets_more_where_more_is_free(policy: Any) -> None:
    (alone,) = advised(policy, EMPTY, [0.0])
    (beside,) = advised(policy, [NodeUnits(16, 8, [(8.0, 1.0)])] * 4, [0.0])
    assert 0 < beside < alone <= MOST
    assert len(advised(policy, EMPTY, [0.0] * 30)) == SLOTS, "who comes later waits in the queue"


def test_a_node_that_would_have_a_job_wait_leaves_it_to_one_that_would_not() -> None:
    def ask(seen: Any) -> Any:
        tasks, cells = np.zeros((1, 2, SLOTS), dtype=np.float32), np.zeros((1, 2, CELLS), dtype=np.float32)
        tasks[0, 0, 0] = 5
        cells[0, 0, 0] = cells[0, 1, 2 * (MOST + 1) + 3] = 1
        return tasks, lambda chosen: cells

    assert advised(ask, EMPTY[:2], [0.0]) == [3]


def test_no_job_gets_what_is_not_free(policy: Any) -> None:
    running = [(13.0, 1.0)]
    assert 0 <= advised(policy, [NodeUnits(16, 3, running)] * 3, [1.0])[0] <= 3
    assert advised(policy, [NodeUnits(16, 0, running)] * 3, [1.0, 2.0]) == [0, 0]
    assert advised(policy, [], [1.0]) == [0]
    assert advised(policy, EMPTY, []) == []


def test_what_a_policy_is_shown() -> None:
    """Of a node of sixteen units and one larger than any in training, with two workers on the first."""
    shown = []

    def ask(seen: Any) -> Any:
        shown.append(seen)
        tasks = np.zeros((1, 2, SLOTS), dtype=np.float32)
        cells = np.zeros((1, 2, CELLS), dtype=np.float32)
        cells[0, 0, 2 * (MOST + 1) + 7] = cells[0, 1, 2 * (MOST + 1) + 9] = 1
        return tasks, lambda chosen: cells

    nodes = [NodeUnits(16, 4, [(8.0, 1.0), (4.0, 100.0)]), NodeUnits(64, 40)]
    assert advised(ask, nodes, [2.0] * 12) == [9] * SLOTS, "the node with more room claims them all"
    (seen,) = shown
    assert set(INPUTS) <= set(seen._fields)
    assert seen.clusters[0].tolist() == pytest.approx(
        np.array([[12 / 16, 4 / 16, 0.2, 1, 1, 0], [LARGEST / 16, LARGEST / 16, 0.2, 2, 2, 1]])
    )
    assert seen.most[0].tolist() == [[12, 4], [16, 16]]
    assert seen.running[0, 0].tolist() == pytest.approx(
        np.array([[2 / 16, 8 / 16, 0.1, 0, 1, 0], [2 / 16, 4 / 16, 5, 0, 1, 0]])
    )
    assert not seen.running[0, 1].any()
    assert seen.pending[0, 1, 0].tolist() == pytest.approx([2 / 16, 1 / 16, 0, 0.2, 0, 1, 0])
    assert seen.usable.all()
    assert seen.seen.all()
