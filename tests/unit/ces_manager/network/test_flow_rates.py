"""What the manager remembers of flows, and how a job's flows are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from manager_world import START, World, full_mesh, ring, sqlite_url

from ces_common.messages.reports import FlowUsage, Heartbeat
from ces_manager import measurements
from ces_manager.measurements import FLOWS_KEPT, FlowHistory, Measurements
from ces_manager.network.flow_rates import job_flows_view

GIVEN = 10_000_000


def beat(*numbers: int, rate: float = 1.0, waited: float = 0.0, node: str = "a") -> Heartbeat:
    flows = [FlowUsage(number=n, measured=rate, peak=rate, total=1, waited=waited, rate=GIVEN) for n in numbers]
    return Heartbeat(node=node, boot="b", flows=flows)


def rates(history: FlowHistory, number: int = 7) -> list[float]:
    return [sample.measured for sample in history.samples("a", number, START)]


def test_a_report_may_arrive_while_history_is_read() -> None:
    history = FlowHistory()
    for _ in range(3):
        history.heard(beat(7), START)

    class Arriving(datetime):
        """A moment at which, as it is looked at, another thread hears of the node."""

        def __le__(self, other: datetime) -> bool:
            history.heard(beat(7), START)
            return True

    assert len(history.samples("a", 7, Arriving(2026, 1, 1, tzinfo=UTC))) == 3


def test_history_ends_by_age_and_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    history = FlowHistory()
    for second in range(400):
        history.heard(beat(7, rate=second), START + timedelta(seconds=second))
    assert rates(history) == list(range(400 - measurements.MAX_REPORTS, 400))
    history.heard(beat(7, rate=-1), START + timedelta(seconds=399) + FLOWS_KEPT)
    assert rates(history) == [399, -1]
    monkeypatch.setattr(measurements, "MAX_SAMPLES", 10)
    for second in range(9):
        history.heard(beat(*range(1, 5), rate=second), START + FLOWS_KEPT * 3 + timedelta(seconds=second))
    assert rates(history, 4) == [7, 8]
    history.forget_old(START + FLOWS_KEPT * 5)
    assert rates(history, 4) == []


@pytest.mark.parametrize(("rate", "warned"), [(0.5 * GIVEN, True), (1.0 * GIVEN, False)])
def test_a_jobs_flows_are_shown_link_by_link_since_it_started(tmp_path: Path, rate: float, warned: bool) -> None:
    world = World(sqlite_url(tmp_path))
    world.add_nodes("a", "b")
    world.put_topology(full_mesh(["a", "b"]))
    job = world.submit(ring(tasks=2))
    measurements = Measurements()

    def heard(rate: float) -> None:
        for node in "ab":
            measurements.heard(beat(1, 2, rate=rate, waited=1.0, node=node), world.now)
        world.now += timedelta(seconds=2)

    heard(99.0)  # of another job whose number it was
    world.run(job, ["a", "b"])
    for _ in range(40):
        heard(rate)
    with world.uow.read() as tx:
        view = job_flows_view(tx, job, measurements, world.now)
        all_of_it = job_flows_view(tx, job, measurements, world.now, START)
    world.close()
    assert [(flow.mode, flow.min, flow.rate, len(flow.hops)) for flow in view.flows] == [
        ("strict", GIVEN, GIVEN, 1)
    ] * 2
    assert {(hop.src, hop.dst, len(hop.samples)) for flow in view.flows for hop in flow.hops} == {
        ("a", "b", 30),
        ("b", "a", 30),
    }
    assert {sample.measured for sample in all_of_it.flows[0].hops[0].samples} == {rate}
    assert len(all_of_it.flows[0].hops[0].samples) == 40
    for flow in view.flows:
        assert (flow.shortfall is not None) == warned
        if flow.shortfall is not None:
            assert [flow.shortfall.src, flow.shortfall.dst] == flow.path
            assert "lets 5 Mbit/s through of the 10 Mbit/s" in flow.shortfall.text
