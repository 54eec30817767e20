"""What is remembered of what agents measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from ces_common.messages.bounds import MAX_ITEMS
from ces_common.messages.reports import (
    MAX_FLOWS,
    FlowUsage,
    Heartbeat,
    LinkUsage,
    Progress,
    WorkerUsage,
)
from ces_manager.measurements import MAX_PROGRESS, Measurements

START = datetime(2030, 1, 1, tzinfo=UTC)


def usage(rate: float, peak: float, total: int, job: str = "a.1") -> FlowUsage:
    return FlowUsage(number=7, job=job, measured=rate, peak=peak, total=total)


def heard(*usages: FlowUsage) -> FlowUsage | None:
    """What is known of the flow after these reports, two seconds apart."""
    measurements = Measurements()
    for i, each in enumerate(usages):
        measurements.heard(Heartbeat(node="n1", boot="b", flows=[each]), START + timedelta(seconds=2 * i))
    return measurements.flow("n1", 7, START)


def test_a_flow_keeps_its_last_rate_and_its_peak_once_it_is_silent() -> None:
    found = heard(usage(40e6, 45e6, 10_000_000), usage(30e6, 31e6, 17_500_000), usage(0, 0, 17_500_000))
    assert found is not None
    assert (found.measured, found.peak) == (30e6, 45e6)


def test_a_flow_that_carried_nothing_yet_is_not_measured() -> None:
    assert heard(usage(0, 0, 0)) is None


def test_a_number_that_is_used_again_starts_anew() -> None:
    found = heard(usage(40e6, 45e6, 10_000_000), usage(1e6, 2e6, 250_000, job="b.1"))
    assert found is not None
    assert (found.measured, found.peak) == (1e6, 2e6)
    assert heard(usage(40e6, 45e6, 10_000_000), usage(0, 0, 0, job="a.2")) is None


def test_a_flow_whose_node_counts_anew_keeps_its_peak() -> None:
    """Its agent was started again, or its class was gone for a while."""
    found = heard(usage(40e6, 45e6, 10_000_000), usage(0, 0, 0), usage(1e6, 2e6, 250_000))
    assert found is not None
    assert (found.measured, found.peak) == (1e6, 45e6)


def progress(node: str, allocation: str, count: int = 0) -> Progress:
    return Progress(node=node, allocation=allocation, job="j", task="t", data={"round": count})


def test_a_node_that_makes_up_allocations_is_remembered_within_bounds_and_harms_no_other() -> None:
    measurements = Measurements()
    measurements.progressed(progress("honest", "a"), START)
    for i in range(3 * MAX_PROGRESS):
        measurements.progressed(progress("liar", f"x{i}"), START)
        measurements.progressed(progress("liar", "steady", i), START)
    measurements.progressed(progress("liar", "a", 99), START)
    assert measurements.progress("honest", "a") == {"round": 0}
    assert measurements.progress("liar", "steady") == {"round": 3 * MAX_PROGRESS - 1}
    kept = [i for i in range(3 * MAX_PROGRESS) if measurements.progress("liar", f"x{i}")]
    assert kept == list(range(3 * MAX_PROGRESS))[-(MAX_PROGRESS - 2) :]


def test_progress_is_forgotten_after_a_while() -> None:
    measurements = Measurements()
    measurements.progressed(progress("n1", "old"), START)
    measurements.progressed(progress("n1", "new"), START + timedelta(minutes=50))
    measurements.forget_old(START + timedelta(minutes=70))
    assert (measurements.progress("n1", "old"), measurements.progress("n1", "new")) == (None, {"round": 0})


def test_what_a_node_measured_is_forgotten_with_it_also_by_the_manager_that_was_not_asked_to() -> None:
    measurements = Measurements()
    measurements.heard(Heartbeat(node="gone", boot="b"), START)
    measurements.heard(Heartbeat(node="here", boot="b"), START + timedelta(minutes=50))
    measurements.forget_old(START + timedelta(minutes=70))
    assert measurements.beat("gone") is None
    assert measurements.beat("here") is not None


@pytest.mark.parametrize("number", [-1, 0, 2**31, 10**30])
def test_a_flow_has_a_number_that_the_database_can_hold(number: int) -> None:
    with pytest.raises(ValidationError, match="number"):
        FlowUsage(number=number, measured=0, peak=0, total=0)


@pytest.mark.parametrize(
    ("kind", "most", "one"),
    [
        ("workers", MAX_ITEMS, WorkerUsage(allocation="a", cpu=0, memory=0)),
        ("links", MAX_ITEMS, LinkUsage(peer="n", sent=0, received=0)),
        ("flows", MAX_FLOWS, FlowUsage(number=1, measured=0, peak=0, total=0)),
    ],
)
def test_a_heartbeat_measures_no_more_than_a_node_can_have(kind: str, most: int, one: object) -> None:
    beat = {"node": "n", "boot": "b"}
    assert Heartbeat.model_validate(beat | {kind: [one] * most})
    with pytest.raises(ValidationError, match=kind):
        Heartbeat.model_validate(beat | {kind: [one] * (most + 1)})


def test_a_node_that_measures_ever_new_flows_takes_no_more_memory() -> None:
    measurements = Measurements()
    for first in range(1, 3 * MAX_FLOWS, MAX_FLOWS):
        flows = [FlowUsage(number=first + i, measured=1, peak=1, total=1) for i in range(MAX_FLOWS)]
        measurements.heard(Heartbeat(node="n", boot="b", flows=flows), START)
    assert measurements.flow("n", 1, START) is None
    assert measurements.flow("n", 2 * MAX_FLOWS, START) is None
    assert measurements.flow("n", 2 * MAX_FLOWS + 1, START) is not None
    assert measurements.flow("n", 3 * MAX_FLOWS, START) is not None


def test_heartbeats_without_flows_leave_nothing_behind() -> None:
    measurements = Measurements()
    for i in range(10):
        measurements.heard(Heartbeat(node="n1", boot="b"), START + timedelta(seconds=2 * i))
    assert measurements.history.samples("n1", 7, START) == []
    assert vars(measurements.history) == {"_nodes": {}}
