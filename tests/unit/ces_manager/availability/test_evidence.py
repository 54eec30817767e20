"""What is concluded of how long something was there."""

from __future__ import annotations

import pytest

from ces_manager.availability.evidence import HALF_LIFE_S, Evidence, availability

HOUR_S, DAY_S = 3600.0, 86400.0


def test_without_evidence_every_value_is_equally_likely() -> None:
    nothing = Evidence()
    assert nothing.least() == pytest.approx(0.05)
    assert availability(nothing, nothing.least()).mean == 0.5


def test_the_longer_nothing_happened_the_more_is_relied_on() -> None:
    least = [Evidence(up_s=seconds).least() for seconds in (60, HOUR_S, DAY_S, 30 * DAY_S)]
    assert least == sorted(least)
    assert least[1] == pytest.approx(0.05 ** (1 / 61))
    assert 0.9979 < least[2] < 0.998


def test_a_failure_costs() -> None:
    day = Evidence(up_s=DAY_S, down_s=10 * 60)
    view = availability(day, day.least())
    assert view.least < Evidence(up_s=DAY_S).least()
    assert view.least < 1 - 10 / 1450 < view.mean + 0.001
    assert view.n == 1450


def test_of_many_days_the_share_that_was_is_found() -> None:
    """A node that is there 95 of 100 minutes: the quantile comes close to that from below."""
    learned = Evidence()
    for _ in range(2000):
        learned = learned.with_more(Evidence(up_s=95 * 60, down_s=5 * 60))
    assert 0.945 < learned.least() < 0.95


def test_old_evidence_counts_half_after_a_month_of_looking() -> None:
    learned = Evidence(up_s=0, down_s=1000).with_more(Evidence(up_s=HALF_LIFE_S))
    assert learned.down_s == pytest.approx(500)
    for _ in range(100):
        learned = learned.with_more(Evidence(up_s=HALF_LIFE_S))
    assert learned.seconds < 2.01 * HALF_LIFE_S, "so it is bounded"
