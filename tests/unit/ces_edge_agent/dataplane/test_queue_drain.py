"""How long lowering a class waits for its shortened queue to drain."""

from __future__ import annotations

import pytest

from ces_edge_agent.dataplane.meters import ClassCounters
from ces_edge_agent.dataplane.plan.objects import Queue
from ces_edge_agent.dataplane.queue_drain import LONGEST_S, SAMPLE_S, QueueDrain
from ces_edge_agent.ports import DataPlaneError

SHORT = Queue("to-n2", 2, limit=1000)
RATE = 100_000.0  # bytes/s at which the queue runs down


class World:
    """A queue that held this many bytes at time 0."""

    def __init__(self, held: float) -> None:
        self.held, self.now = held, 0.0
        self.draining = QueueDrain(self.read, lambda: self.now, self.passes)

    def passes(self, seconds: float) -> None:
        self.now += seconds

    def read(self, device: str) -> dict[int, ClassCounters]:
        assert device == "to-n2"
        return {2: ClassCounters(0, waiting=max(round(self.held - self.now * RATE), 0))}


@pytest.mark.parametrize(("held", "waits_s"), [(900, 0.0), (1000, 0.0), (3000, 0.02), (1e9, LONGEST_S)])
def test_until_it_holds_no_more_than_it_may_and_not_for_ever(held: float, waits_s: float) -> None:
    world = World(held)
    world.draining.shortened(SHORT)
    world.draining.wait("to-n2", 2)
    assert waits_s <= world.now <= waits_s + SAMPLE_S


def test_all_queues_of_a_document_drain_at_once() -> None:
    world = World(1e9)
    world.draining.shortened(SHORT)
    world.passes(LONGEST_S / 2)
    world.draining.shortened(Queue("to-n2", 4, limit=1000))
    world.draining.wait("to-n2", 2)
    world.draining.wait("to-n2", 4)
    assert world.now <= LONGEST_S + SAMPLE_S


def test_other_queues_are_not_waited_for() -> None:
    world = World(1e9)
    world.draining.wait("to-n2", 2)
    world.draining.shortened(Queue("to-n2", 4, limit=1000))
    world.draining.wait("to-n2", 2)
    world.draining.wait("to-n2", 4)  # its class is not there
    assert world.now == 0.0


def test_what_cannot_be_read_is_not_waited_for() -> None:
    def read(device: str) -> dict[int, ClassCounters]:
        raise DataPlaneError(f"counters of {device} cannot be read")

    draining = QueueDrain(read, lambda: 0.0, lambda _: pytest.fail("it waits"))
    draining.shortened(SHORT)
    draining.wait("to-n2", 2)
