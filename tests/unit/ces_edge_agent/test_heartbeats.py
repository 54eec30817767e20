"""What fits into a heartbeat."""

from __future__ import annotations

from ces_common.messages.bounds import MAX_ID, MAX_ITEMS
from ces_common.messages.energy import MAX_METERED, EnergyReport
from ces_common.messages.reports import MAX_FLOWS, MAX_HEARTBEAT, FlowUsage, Heartbeat, LinkUsage, WorkerUsage
from ces_edge_agent.heartbeats import encoded


def test_an_ordinary_one_is_sent_as_it_is() -> None:
    beat = Heartbeat(node="n", boot="b", cpu=1, links=[LinkUsage(peer="m", sent=1, received=2)])
    assert Heartbeat.model_validate_json(encoded(beat)) == beat


def test_of_more_measurements_than_are_taken_some_are_left_out() -> None:
    beat = Heartbeat(
        node="n",
        boot="b",
        cpu=1500,
        workers=[WorkerUsage(allocation=f"a{i}", cpu=1, memory=1) for i in range(MAX_ITEMS)],
        links=[LinkUsage(peer=f"n{i}", sent=1, received=1) for i in range(MAX_ITEMS)],
        flows=[FlowUsage(number=i, job="j", measured=1, peak=1, total=1) for i in range(1, MAX_FLOWS + 1)],
    )
    data = encoded(beat)
    assert len(data) <= MAX_HEARTBEAT
    sent = Heartbeat.model_validate_json(data)
    assert (sent.node, sent.boot, sent.cpu) == ("n", "b", 1500)
    assert sent.workers
    assert sent.links
    assert sent.flows


def test_energy_always_fits() -> None:
    names = [f"{i:0>{MAX_ID}}" for i in range(MAX_METERED)]
    energy = EnergyReport(source="measured", total=2**63 - 1, allocations=dict.fromkeys(names, 2**62))
    beat = Heartbeat(node="n", boot="b", energy=energy, flows=[
        FlowUsage(number=i, job="j", measured=1, peak=1, total=1) for i in range(1, MAX_FLOWS + 1)
    ])  # fmt: skip
    assert Heartbeat.model_validate_json(encoded(beat)).energy == energy
