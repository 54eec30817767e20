"""Progress as the manager hears it: of the node that speaks, and of bounded length."""

from __future__ import annotations

import asyncio
from typing import cast

from memory_bus import MemoryBroker, MemoryBus

from ces_common import subjects
from ces_common.db import UnitOfWork
from ces_common.messages.reports import Progress
from ces_manager.broadcast import Broadcast
from ces_manager.database import Database
from ces_manager.measurements import Measurements
from ces_manager.messaging.handlers import PROGRESS_LIMIT, Messaging
from ces_manager.nodes.failure_detector import FailureDetector
from ces_manager.timeouts import Timeouts


def said(allocation: str, node: str = "n1", length: int = 1) -> bytes:
    return Progress(node=node, allocation=allocation, job="j", task="t", data={"x": "y" * length}).encode()


async def test_what_is_too_long_or_in_another_nodes_name_is_ignored() -> None:
    bus, measurements = MemoryBus(MemoryBroker()), Measurements()
    database = Database(cast(UnitOfWork, None))
    await bus.connect()
    try:
        await Messaging(
            database, bus, Timeouts(), FailureDetector(database.clock.steady), measurements, Broadcast()
        ).start()
        for data in (said("long", length=PROGRESS_LIMIT), said("forged", node="n2"), b"rubbish", said("last")):
            await bus.publish(subjects.report("n1", "progress"), data)
        async with asyncio.timeout(60):
            while measurements.progress("n1", "last") is None:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert measurements.progress("n1", "long") is None
        assert measurements.progress("n1", "forged") is None
        assert measurements.progress("n2", "forged") is None
    finally:
        await bus.close()
        database.close()
