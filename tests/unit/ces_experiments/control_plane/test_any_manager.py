"""A client's way to whichever manager is there."""

from __future__ import annotations

import httpx
import pytest

from ces_experiments.control_plane import any_manager
from ces_experiments.control_plane.any_manager import AnyManager


class Managers:
    """``away``: the ports on which nobody listens; ``busy``: those whose manager has no database."""

    def __init__(self) -> None:
        self.away: set[int] = set()
        self.busy: set[int] = set()
        self.asked: list[int] = []
        transport = AnyManager(["http://here:1", "http://here:2"], httpx.MockTransport(self.answer))
        self.http = httpx.AsyncClient(base_url="http://here:1", transport=transport)

    def answer(self, request: httpx.Request) -> httpx.Response:
        port = request.url.port or 0
        self.asked.append(port)
        if port in self.away:
            raise httpx.ConnectError("refused")
        return httpx.Response(503 if port in self.busy else 200, text=f"{port}: {request.content.decode()}")


@pytest.fixture
def managers(monkeypatch: pytest.MonkeyPatch) -> Managers:
    monkeypatch.setattr(any_manager, "PAUSE_S", 0.0)
    return Managers()


async def test_it_stays_with_one_that_answers(managers: Managers) -> None:
    for _ in range(3):
        assert (await managers.http.get("/v1/nodes")).text.startswith("1:")
    assert managers.asked == [1, 1, 1]


@pytest.mark.parametrize("how", ["away", "busy"])
async def test_it_sends_the_same_to_the_next_where_one_is_away(managers: Managers, how: str) -> None:
    getattr(managers, how).add(1)
    assert (await managers.http.post("/v1/jobs", json={"name": "a"})).text == '2: {"name":"a"}'
    getattr(managers, how).clear()
    await managers.http.get("/v1/nodes")
    assert managers.asked == [1, 2, 2]


async def test_it_waits_for_one_to_come_back(managers: Managers) -> None:
    managers.away = {1, 2}

    def answer(request: httpx.Request) -> httpx.Response:
        if len(managers.asked) == 5:
            managers.away.clear()
        return managers.answer(request)

    transport = AnyManager(["http://here:1", "http://here:2"], httpx.MockTransport(answer))
    async with httpx.AsyncClient(base_url="http://here:1", transport=transport) as http:
        assert (await http.get("/v1/nodes")).status_code == 200
    assert managers.asked == [1, 2, 1, 2, 1, 2]


async def test_it_gives_up_where_none_answers_for_long(managers: Managers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(any_manager, "DOWN_S", 0.0)
    managers.away = {1, 2}
    with pytest.raises(httpx.ConnectError):
        await managers.http.get("/v1/nodes")
