"""Rates in windows of time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_edge_agent.scores.timeline import window_rates, work_at

PERIOD_S = 0.1


def test_work_goes_on_evenly_between_two_entries_and_stands_still_beyond_them() -> None:
    timeline = [(1.0, 0.0), (2.0, 10.0), (4.0, 12.0)]
    assert [work_at(timeline, at) for at in (0.0, 1.0, 1.5, 2.0, 3.0, 9.0)] == [0.0, 0.0, 5.0, 10.0, 11.0, 12.0]


def test_rates_of_several_processes_add_up() -> None:
    one, other = [(0.0, 0.0), (10.0, 100.0)], [(0.0, 0.0), (10.0, 50.0)]
    assert window_rates([one, other], 1.0, 2.0, 3) == pytest.approx([15.0, 15.0, 15.0])


def under_quota(share: float, step_s: float, phase_s: float, until: float) -> list[tuple[float, float]]:
    """What a thread records that may run for a share of each period: it is stopped in the midst of a step."""
    timeline, now, done = [(0.0, 0.0)], 0.0, 0.0
    while now < until:
        left = step_s
        while left > 1e-12:
            into = (now + phase_s) % PERIOD_S
            runs = share * PERIOD_S - into
            if runs <= 1e-9:
                now += PERIOD_S - into + 1e-9  # surely into the next one, whatever is rounded
                continue
            took = min(left, runs)
            now, left = now + took, left - took
        done += 1.0
        timeline.append((now, done))
    return timeline


@settings(max_examples=40)
@given(st.sampled_from([0.25, 0.5, 1.0]), st.floats(0.0, 0.0999), st.floats(0.0005, 0.001))
def test_a_quota_is_found_whatever_its_phase(share: float, phase_s: float, step_s: float) -> None:
    """Windows of two periods; a step of a millisecond is a fiftieth of what a quarter leaves of them."""
    timeline = under_quota(share, step_s, phase_s, 1.3)
    rates = window_rates([timeline], 0.05, 2 * PERIOD_S, 5)
    full = 1.0 / step_s
    assert all(abs(rate / full - share) <= 0.045 * share for rate in rates)
    assert sum(rates) / 5 == pytest.approx(share * full, rel=0.01)
