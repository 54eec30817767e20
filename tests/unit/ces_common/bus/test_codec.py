"""What a compressed message can make its reader hold."""

from __future__ import annotations

import zlib

import pytest

from ces_common.bus.codec import ENCODING, unpack
from ces_common.bus.port import BusError

PACKED = {ENCODING: "zlib"}


@pytest.mark.parametrize("largest", [0, 1, 1024])
def test_nothing_expands_beyond_what_is_taken(largest: int) -> None:
    for size in (largest + 1, largest + 1_000_000):
        with pytest.raises(BusError, match=f"beyond {largest} bytes"):
            unpack(zlib.compress(b"x" * size), PACKED, largest)
        with pytest.raises(BusError):
            unpack(b"x" * size, {}, largest)
    assert unpack(zlib.compress(b"x" * largest), PACKED, largest) == b"x" * largest
    assert unpack(b"x" * largest, {}, largest) == b"x" * largest


def test_what_is_cut_short_or_damaged_is_refused() -> None:
    packed = zlib.compress(b"x" * 1000)
    for data in (packed[:-1], b"", b"x", b"\0" + packed):
        with pytest.raises(BusError):
            unpack(data, PACKED, 10_000)
