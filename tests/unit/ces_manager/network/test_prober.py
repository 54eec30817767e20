"""What follows from the rates that the two ends of a link measured."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ces_common import subjects
from ces_common.bus.port import BusError
from ces_common.messages.agent_queries import LinkProbed
from ces_manager.network.prober import Ends, Prober, capacity_found

MBIT = 1_000_000


@pytest.mark.parametrize(
    ("before", "sent", "received", "found"),
    [
        (None, 100, 99, 100),  # all that was sent arrived, and it was all that there may be
        (40, 100, 99, 100),  # the wire has recovered
        (None, 96, 95, 100),
        (None, 73, 70, None),  # a busy sender
        (None, 100, 60, 60),  # more was sent than came
        (None, 60, 30, 30),
        (None, 60, 60, None),  # the sender could do no more: no less than that
        (40, 60, 60, None),  # which refutes what was found before
        (80, 60, 60, 80),  # or does not
    ],
)
def test_a_link_carries_what_arrives_of_more(before: int | None, sent: int, received: int, found: int | None) -> None:
    old = None if before is None else before * MBIT
    new = None if found is None else found * MBIT
    assert capacity_found(100 * MBIT, old, sent * MBIT, received * MBIT) == new


class _Desk:
    async def read(self, _: object) -> Ends:
        return Ends(100 * MBIT, None)


class _Bus:
    """The near end fails at once, the far one measures until it is let go."""

    def __init__(self) -> None:
        self.refused, self.measured = asyncio.Event(), asyncio.Event()
        self.asked: list[str] = []

    async def request(self, subject: str, *_: object, **__: object) -> bytes:
        self.asked.append(subject)
        if subject == subjects.agent_rpc("a", "probe"):
            self.refused.set()
            raise BusError("refused")
        await self.measured.wait()
        return LinkProbed(rate=1.0).encode()


async def test_a_link_is_measured_while_it_is_this_managers_turn() -> None:
    bus: Any = _Bus()
    database: Any = _Desk()
    may, over = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def turn() -> AsyncIterator[None]:
        await may.wait()
        try:
            yield
        finally:
            over.set()

    probe = asyncio.create_task(Prober(database, bus, turn).probe("a", "b", 0.5))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not bus.asked
    may.set()
    await bus.refused.wait()
    assert not over.is_set()
    bus.measured.set()
    with pytest.raises(BusError, match="refused"):
        await probe
    assert over.is_set()


async def test_a_probe_that_failed_at_one_end_is_over_once_the_other_has_measured() -> None:
    bus: Any = _Bus()
    database: Any = _Desk()
    probe = asyncio.create_task(Prober(database, bus).probe("a", "b", 0.5))
    await bus.refused.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert not probe.done()
    bus.measured.set()
    with pytest.raises(BusError, match="refused"):
        await probe


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"rate": NaN}', b'{"rate": -1}', b"\xff"])
async def test_an_answer_that_is_no_measurement_is_the_nodes_fault(answer: bytes) -> None:
    class Rogue:
        async def request(self, *_: object, **__: object) -> bytes:
            return answer

    database: Any = _Desk()
    bus: Any = Rogue()
    with pytest.raises(BusError, match="answers with what is no measurement"):
        await Prober(database, bus).probe("a", "b", 0.2)
