"""What is remembered of what agents measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ces_common.messages.reports import FlowUsage, Heartbeat
from ces_manager.measurements import Measurements

START = datetime(2030, 1, 1, tzinfo=UTC)


def usage(rate: float, peak: float, total: int) -> FlowUsage:
    return FlowUsage(number=7, rate=rate, peak=peak, total=total)


def heard(*usages: FlowUsage) -> FlowUsage | None:
    """What is known of the flow after these reports, two seconds apart."""
    measurements = Measurements()
    for i, each in enumerate(usages):
        measurements.heard(Heartbeat(node="n1", boot="b", flows=[each]), START + timedelta(seconds=2 * i))
    return measurements.flow("n1", 7, START)


def test_a_flow_keeps_its_last_rate_and_its_peak_once_it_is_silent() -> None:
    found = heard(usage(40e6, 45e6, 10_000_000), usage(30e6, 31e6, 17_500_000), usage(0, 0, 17_500_000))
    assert found is not None
    assert (found.rate, found.peak) == (30e6, 45e6)


def test_a_flow_that_carried_nothing_yet_is_not_measured() -> None:
    assert heard(usage(0, 0, 0)) is None


def test_a_number_that_is_used_again_starts_anew() -> None:
    found = heard(usage(40e6, 45e6, 10_000_000), usage(1e6, 2e6, 250_000))
    assert found is not None
    assert (found.rate, found.peak) == (1e6, 2e6)
