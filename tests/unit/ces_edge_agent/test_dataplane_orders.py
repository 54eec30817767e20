"""The data plane as a process of its own: what it takes for an order, and that it goes on after a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_parts import FakeNetwork

from ces_edge_agent.dataplane import __main__ as process
from ces_edge_agent.dataplane.errors import DataPlaneError

DOCUMENT = {"node": "n1", "generation": 1}


@pytest.mark.parametrize(
    "order",
    [[], {}, {"wanted": DOCUMENT}, {"wanted": DOCUMENT, "holders": None}, {"wanted": None, "holders": {}}],
)
async def test_a_malformed_order_is_refused(order: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        await process.Orders(FakeNetwork()).obey(order)


async def test_it_goes_on_measuring_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "REPORT_S", 0.001)
    network = FakeNetwork()
    measured = asyncio.Event()
    failures = iter([DataPlaneError("no such device")])

    async def usage() -> None:
        for failure in failures:
            raise failure
        measured.set()

    monkeypatch.setattr(network, "usage", usage)
    keeping = asyncio.create_task(process.Orders(network).keep())
    try:
        await asyncio.wait_for(measured.wait(), 5)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
