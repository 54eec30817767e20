"""How often a sender may say something."""

from __future__ import annotations

from ces_common.rates import LOOK_EVERY, SenderRate


def test_a_burst_is_taken_and_then_only_so_many_a_second() -> None:
    rate = SenderRate(10, 20)
    assert sum(rate.allows("flood", 100.0) for _ in range(1000)) == 20
    assert sum(rate.allows("flood", 100.0 + i / 100) for i in range(1, 101)) == 10
    assert rate.allows("other", 100.0), "nobody pays for another"


def test_one_in_time_is_always_taken_and_the_quiet_are_forgotten() -> None:
    rate = SenderRate(10, 20)
    assert all(rate.allows("steady", i / 10) for i in range(1000))
    for i in range(2 * LOOK_EVERY):
        rate.allows(f"n{i}", 1000.0 + i)
    assert len(rate._due) <= LOOK_EVERY
