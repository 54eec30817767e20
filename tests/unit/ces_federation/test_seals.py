from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_federation.seals import FRESH_S, BadSeal, key_of, seal, unseal

KEY = key_of("a secret of one pair of regions")
TO_B = "ces.regions.v1.b.a.bid.1"


@given(st.binary(max_size=2000), st.floats(0, 4e9), st.floats(-FRESH_S + 1, FRESH_S - 1))
def test_what_was_sealed_comes_out_again(data: bytes, now: float, later: float) -> None:
    sealed = seal(KEY, TO_B, data, now)
    assert unseal(KEY, TO_B, sealed, now + later) == data
    assert len(data) < 8 or data not in sealed


@given(st.integers(0, 90), st.integers(1, 255))
def test_not_a_bit_can_be_changed(place: int, flip: int) -> None:
    sealed = bytearray(seal(KEY, TO_B, b"x" * 100, 0.0))
    sealed[place] ^= flip
    with pytest.raises(BadSeal):
        unseal(KEY, TO_B, bytes(sealed), 0.0)


@pytest.mark.parametrize(
    ("key", "subject", "now"),
    [
        (key_of("a secret of another pair of regions"), TO_B, 0.0),
        (KEY, "ces.regions.v1.c.a.bid.1", 0.0),  # passed on to another region
        (KEY, "ces.regions.v1.a.b.answer.1", 0.0),  # sent back as an answer
        (KEY, "ces.regions.v1.b.a.commit.1", 0.0),
        (KEY, "ces.regions.v1.b.a.bid.2", 0.0),
        (KEY, TO_B, FRESH_S + 1),
        (KEY, TO_B, -FRESH_S - 1),
    ],
)
def test_it_is_good_for_one_pair_one_message_and_a_minute(key: bytes, subject: str, now: float) -> None:
    with pytest.raises(BadSeal):
        unseal(key, subject, seal(KEY, TO_B, b"data", 0.0), now)


@pytest.mark.parametrize("sealed", [b"", b"x", b"x" * 24, b"x" * 60])
def test_what_is_no_seal_is_refused(sealed: bytes) -> None:
    with pytest.raises(BadSeal):
        unseal(KEY, TO_B, sealed, 0.0)
