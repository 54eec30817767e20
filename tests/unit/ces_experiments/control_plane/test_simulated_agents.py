"""The agents that a benchmark of the control plane simulates."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from waiting import until

from ces_common import subjects
from ces_common.bus.port import BusError, NoResponder
from ces_common.messages.desired import DesiredCompute
from ces_common.messages.reports import LeaseGrant, LinkReport
from ces_experiments.control_plane.simulated_agents import ASKED_AT_ONCE, SimulatedNode
from ces_experiments.control_plane.wire import Answer, Wire

GRANT = LeaseGrant(lease_s=30.0).encode()


class FakeWire(Wire):
    """Takes everything in; answers when the test wants."""

    def __init__(self) -> None:
        self.lost = asyncio.get_running_loop().create_future()
        self.asked: list[Answer] = []
        self.published: list[tuple[str, bytes]] = []

    def ask(self, subject: str, data: bytes, patience_s: float, answered: Answer) -> str:
        self.asked.append(answered)
        return str(len(self.asked))

    def give_up(self, number: str) -> bool:
        return True

    def publish(self, subject: str, data: bytes) -> None:
        self.published.append((subject, data))

    def close(self) -> None: ...


def running(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[SimulatedNode, FakeWire, asyncio.Task[None]]:
    node, wire = SimulatedNode("a", lambda _: 60.0, **options), FakeWire()
    monkeypatch.setattr(node, "_wire", wire)
    return node, wire, asyncio.create_task(node.run())


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=60)
    assert done == {task}


async def test_a_lease_counts_from_when_its_heartbeat_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    node, wire, task = running(monkeypatch)
    await asyncio.sleep(0)
    [answered] = wire.asked
    answered(GRANT)
    [(sent, took_s)] = node.beats
    assert (node.lease.granted, node.lease.ends) == (sent, sent + 30.0)
    assert took_s >= 0.0
    await ended(task)


async def test_heartbeats_that_wait_are_bounded_and_those_refused_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    node, wire, task = running(monkeypatch, interval_s=0.0)
    await until(lambda: len(wire.asked) == ASKED_AT_ONCE)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(wire.asked) == ASKED_AT_ONCE
    refused: BusError = NoResponder("nobody")
    wire.asked[0](refused)
    assert node.unanswered == 1
    await ended(task)


async def test_what_it_hears_is_reported_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    node, wire, task = running(monkeypatch)
    await asyncio.sleep(0)
    document = DesiredCompute(node="a", generation=3, workers=[]).encode()
    key = subjects.desired_key("a", "compute")
    node._changed(f"{subjects.DESIRED_CHANGES}.{key}", document)
    await until(lambda: bool(wire.published))
    assert [subject for subject, _ in wire.published] == [subjects.report("a", "status")]
    node._changed(f"{subjects.DESIRED_CHANGES}.{key}", document)
    await ended(task)
    said = len(wire.published)
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(wire.published) == said


async def test_links_are_told_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    node, wire, task = running(monkeypatch, peers=["b", "c"])
    await asyncio.sleep(0)
    node.down.add("c")
    node.links_changed()
    states = [
        {link.peer: link.state for link in LinkReport.model_validate_json(data).links} for _, data in wire.published
    ]
    assert states == [{"b": "up", "c": "up"}, {"b": "up", "c": "down"}]
    await ended(task)
