"""The data plane as a process of its own: which requests it takes, and that it goes on after a failure."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_parts import FakeNetwork

from ces_common.messages.reports import LinkKeys, LinkStatus
from ces_edge_agent.dataplane import __main__ as process
from ces_edge_agent.ports import DataPlaneError

DOCUMENT = {"node": "n1", "generation": 1}


@pytest.mark.parametrize(
    "request_",
    [[], {}, {"desired": DOCUMENT}, {"desired": DOCUMENT, "sandboxes": None}, {"desired": None, "sandboxes": {}}],
)
async def test_a_malformed_request_is_refused(request_: Any) -> None:
    with pytest.raises(ValueError, match="validation error"):
        await process.RequestHandler(FakeNetwork()).answer(request_)


async def test_it_tells_its_public_keys_and_the_states_of_its_links() -> None:
    network = FakeNetwork()
    handler = process.RequestHandler(network)
    assert await handler.answer({"keys": True}) == {"keys": []}
    network.keys = LinkKeys(keys=["A" * 43 + "="], port=51872)
    network.states = [LinkStatus(peer="n2", state="up")]
    assert await handler.answer({"keys": True}) == {"keys": ["A" * 43 + "="]}
    assert await handler.answer({"links": True}) == {"links": {"n2": "up"}}


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
    keeping = asyncio.create_task(process.RequestHandler(network).keep())
    try:
        await asyncio.wait_for(measured.wait(), 60)
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
