"""What resizes cost in simulation."""

from __future__ import annotations

import pytest

from ces_sim.malleable.cost import resize_s


@pytest.mark.parametrize(
    ("size", "capacity", "more", "expected"),
    [
        (1, 128, {}, 4.0),
        (8, 128, {}, 10.0),
        (8, 128, {"warm": True}, 2.0),
        (8, 128, {"restart": True}, 37.0),
        (8, 256, {}, 15.0),
        (8, 256, {"restart": True}, 62.0),
    ],
)
def test_seconds(size: int, capacity: int, more: dict[str, bool], expected: float) -> None:
    assert resize_s(size, capacity, **more) == expected
