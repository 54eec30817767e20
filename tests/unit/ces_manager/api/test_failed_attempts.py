"""How often an address may fail."""

from __future__ import annotations

from ces_manager.api import failed_attempts
from ces_manager.api.failed_attempts import FailureCounts


def test_who_fails_too_often_waits_and_then_may_try_again() -> None:
    counts = FailureCounts(per_s=0.5, burst=3)
    for _ in range(3):
        assert counts.wait_s("one", 10.0) == 0
        counts.failed("one", 10.0)
    assert counts.wait_s("one", 10.0) == 2.0
    assert counts.wait_s("other", 10.0) == 0
    assert counts.wait_s("one", 11.5) == 0.5
    assert counts.wait_s("one", 12.0) == 0
    counts.failed("one", 12.0)
    assert counts.wait_s("one", 12.0) == 2.0
    assert counts.wait_s("one", 100.0) == 0


def test_addresses_that_come_and_go_fill_no_memory() -> None:
    counts = FailureCounts(per_s=1.0, burst=1)
    for number in range(failed_attempts.MOST_ADDRESSES + 10):
        counts.failed(str(number), 0.0)
    assert counts.wait_s("0", 0.0) == 0, "the first are forgotten"
    assert counts.wait_s(str(failed_attempts.MOST_ADDRESSES + 9), 0.0) > 0
