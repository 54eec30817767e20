"""Rates from looks at a counter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.dataplane.links.probe import Sample, best_rate, count, timed
from ces_edge_agent.ports import DataPlaneError


def test_the_best_window_counts_and_a_burst_within_it_does_not() -> None:
    idle_then_busy = [(0.0, 0), (1.0, 0), (2.0, 1000), (3.0, 2000), (3.1, 2500), (4.0, 2600)]
    assert best_rate(idle_then_busy, 2.0) == pytest.approx(2500 * 8 / 2.1)
    assert best_rate(idle_then_busy, 60.0) == 0.0
    assert best_rate([], 1.0) == 0.0


@given(st.lists(st.tuples(st.floats(0.01, 1), st.integers(0, 10**6)), min_size=1, max_size=30), st.floats(0.05, 3))
def test_no_window_of_that_length_is_faster(steps: list[tuple[float, int]], window: float) -> None:
    samples, now, total = [(0.0, 0)], 0.0, 0
    for seconds, more in steps:
        now, total = now + seconds, total + more
        samples.append((now, total))
    rates = [
        (late[1] - early[1]) * 8 / (late[0] - early[0])
        for i, early in enumerate(samples)
        for late in samples[i + 1 :]
        if late[0] - early[0] >= window
    ]
    assert best_rate(samples, window) <= max(rates, default=0.0) * (1 + 1e-9)
    steady = [(then, round(then * 1000)) for then, _ in samples]
    if now >= window:
        assert best_rate(steady, window) == pytest.approx(8000, abs=8 / window)


def test_a_look_that_took_long_says_nothing() -> None:
    assert timed(lambda: 7, iter([1.0, 1.004]).__next__) == (pytest.approx(1.002), 7)
    assert timed(lambda: 7, iter([1.0, 1.02]).__next__) is None


async def test_a_node_too_busy_to_look_measures_nothing() -> None:
    """A rate of zero would take the link's capacity away."""

    async def late() -> Sample | None:
        return None

    with pytest.raises(DataPlaneError, match="too busy"):
        await count(late, 0.05)
