"""Hostile variants of every message of an agent, handed to the code of the manager and network-ctl itself, one by one
and without limits of rates, so that all are looked into: nothing fails, and nothing of another node changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pytest
from databases import new_database
from rest_api import Api, join, running_api
from structlog.testing import capture_logs

from ces_common.bus.port import Bus, BusError, RemoteError
from ces_common.rates import SenderRate
from ces_common.state_view import StateView
from ces_experiments.security.kinds import KINDS, SAID, Kind
from ces_experiments.security.mutations import Variant, variants
from ces_manager.messaging import report_intake
from ces_network_ctl.announcements import Announcements

ROGUE, HONEST = "rogue", "honest"
EACH = 400
FAILED = ("failed", "cannot be taken in", "could not be renewed", "dropped")


class OneByOne:
    """In the place of batches in which only the newest message of each node is left."""

    under_way: ClassVar[set[asyncio.Future[None]]] = set()

    def __init__(self, work: Callable[[list[Any]], Awaitable[None]]) -> None:
        self._work = work

    def put(self, _key: str, item: Any, _size: int = 0) -> bool:
        task = asyncio.ensure_future(self._work([item]))
        self.under_way.add(task)
        task.add_done_callback(self.under_way.discard)
        return True


@pytest.fixture
async def open_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """It takes in all that it hears."""
    monkeypatch.setattr(report_intake, "LatestBatches", OneByOne)
    OneByOne.under_way.clear()
    monkeypatch.setattr(SenderRate, "allows", lambda *_: True)
    async with running_api(tmp_path, new_database("sqlite", tmp_path)) as made:
        yield made


def hostile(kind: Kind) -> Iterator[Variant]:
    return islice(variants(kind.sample(ROGUE), [HONEST, "manager"], f"1 {kind.name}"), EACH)


async def said(bus: Bus, kind: Kind, variant: Variant) -> str:
    """The code of the refusal, if there was one. Odd bytes in place of headers never come as far as this code."""
    headers = {} if isinstance(variant.headers, bytes) else dict(variant.headers)
    if kind.subject(ROGUE).startswith("ces.v1.agent."):
        await bus.publish(kind.subject(ROGUE), variant.payload, headers=headers)
        for _turn in range(3):  # of the loop, after which whoever hears it has it
            await asyncio.sleep(0)
        await asyncio.gather(*OneByOne.under_way)
        return ""
    try:
        await bus.request(kind.subject(ROGUE), variant.payload, timeout_s=20)
    except RemoteError as error:
        return error.code
    except BusError as error:  # too large for any message
        return type(error).__name__
    return ""


async def state(api: Api) -> dict[str, Any]:
    """All but the rogue node."""
    found = {path: (await api.http.get(path)).json() for path in ("/v1/jobs", "/v1/links")}
    nodes = (await api.http.get("/v1/nodes")).json()["items"]
    return {**found, "nodes": [{**node, "last_heartbeat": None} for node in nodes if node["name"] != ROGUE]}


@pytest.mark.parametrize("kind", SAID, ids=lambda kind: kind.name)
async def test_the_manager_looks_into_each_and_fails_at_none(open_api: Api, kind: Kind) -> None:
    for node in (ROGUE, HONEST):
        token = (await open_api.http.post("/v1/nodes/tokens", json={})).json()["token"]
        assert (await join(open_api, token, node)).status_code == 200
    await open_api.submit()
    await open_api.heard(HONEST)
    before = await state(open_api)
    with capture_logs() as told:
        codes = {await said(open_api.bus, kind, variant) for variant in hostile(kind)}
        await open_api.heard(HONEST)
    assert [line for line in told if any(word in str(line["event"]) for word in FAILED)] == []
    assert "internal" not in codes
    assert await state(open_api) == before


async def test_network_ctl_looks_into_each_report_and_fails_at_none(open_api: Api) -> None:
    [kind] = [kind for kind in KINDS if kind.name == "applied"]
    ctl = Announcements(open_api.bus, lambda: 0.0, StateView, lambda _: frozenset())
    await ctl.listen()
    with capture_logs() as told:
        for variant in hostile(kind):
            await said(open_api.bus, kind, variant)
        await open_api.heard()
        await ctl.say()
    assert any("report ignored" in str(line["event"]) for line in told)
    assert [line for line in told if "failed" in str(line["event"])] == []
