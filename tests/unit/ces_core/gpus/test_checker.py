"""The checker objects to everything that cannot be."""

from __future__ import annotations

import pytest

from ces_core.gpus.checker import Placed, faults
from ces_core.gpus.model import GpuNode, GpuTask

NODES = [GpuNode("a", 4000, 1000, 2, "T4", 16_000), GpuNode("b", 4000, 1000)]
SHARE = GpuTask("s", 1000, 100, 1, 600, frozenset({"T4"}), 9000)


def test_what_fits_is_right() -> None:
    assert faults(NODES, [Placed(SHARE, 0, (0,)), Placed(SHARE, 0, (1,)), Placed(GpuTask("c", 4000, 1000), 1)]) == []


@pytest.mark.parametrize(
    ("placed", "said"),
    [
        ([Placed(SHARE, 0, (0,)), Placed(SHARE, 0, (0,))], "a, card 0: 1200 milli"),
        ([Placed(SHARE, 0, (0,)), Placed(SHARE, 0, (0,))], "a, card 0: 18000 MiB"),
        ([Placed(GpuTask("t", 4001, 0), 0)], "a: 4001 milli of 4000 CPU"),
        ([Placed(GpuTask("t", 0, 1001), 1)], "b: 1001 MiB of 1000 memory"),
        ([Placed(GpuTask("t", 0, 0, 2, 1000), 0, (0, 0))], r"t has cards \(0, 0\)"),
        ([Placed(SHARE, 0, ())], r"s has cards \(\) of a and asks for 1"),
        ([Placed(SHARE, 0, (2,))], "s has card 2 of a, which has 2"),
        ([Placed(GpuTask("t", 0, 0, 1, 10, frozenset({"P100"})), 0, (0,))], "t is on T4 of a and asks for P100"),
        ([Placed(SHARE, 2, (0,))], "s is on node 2 of 2"),
    ],
)
def test_what_cannot_be_is_named(placed: list[Placed], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        raise AssertionError("; ".join(faults(NODES, placed)))
