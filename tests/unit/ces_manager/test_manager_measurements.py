from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ces_common.messages.reports import FlowUsage, Heartbeat
from ces_manager.measurements import Measurements

START = datetime(2030, 1, 1, tzinfo=UTC)


def heard(*reports: tuple[float, float, int] | None) -> FlowUsage | None:
    """What is told of flow 1 after heartbeats a second apart: (rate, peak, total), or None where it is not reported."""
    measurements = Measurements()
    for second, report in enumerate(reports):
        flows = [FlowUsage(number=1, rate=report[0], peak=report[1], total=report[2])] if report else []
        beat = Heartbeat(node="n1", boot="b", flows=flows)
        measurements.heard(beat, START + timedelta(seconds=second))
    return measurements.flow("n1", 1, START)


def test_the_busiest_second_stays_and_a_quiet_end_hides_no_rate() -> None:
    usage = heard((40, 48, 100), (45, 47, 200), (0, 0, 200))
    assert usage is not None
    assert (usage.rate, usage.peak) == (45, 48)


def test_a_number_that_was_away_is_another_flow() -> None:
    usage = heard((40, 48, 100), None, (5, 6, 300))
    assert usage is not None
    assert (usage.rate, usage.peak) == (5, 6)


def test_a_count_from_zero_is_another_flow() -> None:
    usage = heard((40, 48, 100), (5, 6, 30))
    assert usage is not None
    assert (usage.rate, usage.peak) == (5, 6)


def test_another_flow_may_begin_with_silence() -> None:
    usage = heard((40, 48, 100), None, (0, 0, 0), (5, 6, 300))
    assert usage is not None
    assert (usage.rate, usage.peak) == (5, 6)


def test_a_flow_without_data_is_not_measured() -> None:
    assert heard((0, 0, 0)) is None
