"""Following the logs of a job whose agents and database are told what to say."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ces_common.messages.agent_queries import LogAnswer, LogQuery
from ces_common.states import JobState
from ces_manager.api import logs
from ces_manager.api.context import Context

ALLOCATIONS = ("a1", "a2")  # of two attempts


class Agents:
    """One task with two attempts, each with a log; the second attempt begins when the first log was read."""

    def __init__(self) -> None:
        self.logs = {"a1": b"one\ntwo\nthree\n", "a2": b""}
        self.queries: list[LogQuery] = []
        self.attempt = 0

    async def request(self, subject: str, data: bytes, timeout_s: float, largest: int) -> bytes:
        query = LogQuery.model_validate_json(data)
        self.queries.append(query)
        log = self.logs[query.allocation]
        start = query.offset if query.tail is None else log.index(b"three")
        return LogAnswer(found=bool(log), offset=len(log), text=log[start:].decode(), complete=True).encode()

    async def read(self, function: Any) -> Any:
        view = SimpleNamespace(
            placement=[SimpleNamespace(name="t", node="n", allocation=ALLOCATIONS[self.attempt])],
            state=JobState.RUNNING if len(self.queries) < 5 else JobState.SUCCEEDED,
            region=None,
            parts=[],
        )
        self.attempt = 1
        if len(self.queries) > 3:
            self.logs["a2"] = b"anew\nagain\n"
        return view


async def admitted() -> bool:
    return True


async def refused() -> bool:
    return False


async def test_who_is_admitted_no_more_reads_nothing() -> None:
    agents = Agents()
    context = SimpleNamespace(stopping=asyncio.Event(), database=agents, bus=agents, measurements=None)
    assert [text async for text in logs.follow_logs(cast(Context, context), "j", None, True, 1, refused)] == [
        logs.ENDED
    ]
    assert agents.queries == []


async def test_only_what_was_there_at_first_is_cut_to_its_last_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "LOOK_S", 0.0)
    agents = Agents()
    context = SimpleNamespace(stopping=asyncio.Event(), database=agents, bus=agents, measurements=None)
    following = logs.follow_logs(cast(Context, context), "j", None, True, 1, admitted)
    texts = [text async for text in following]
    assert "".join(texts) == "t | three\nt | anew\nt | again\n"
    tails = {query.allocation: [] for query in agents.queries}
    for query in agents.queries:
        tails[query.allocation].append(query.tail)
    assert tails["a1"][0] == 1
    assert {*tails["a1"][1:], *tails["a2"]} == {None}


class Rogue:
    """An agent whose answers are these, one after the other."""

    def __init__(self, *answers: bytes) -> None:
        self.left = [*answers, LogAnswer(found=True, complete=True).encode()]

    async def request(self, subject: str, data: bytes, timeout_s: float, largest: int) -> bytes:
        return self.left.pop(0)

    async def read(self, function: Any) -> Any:
        task = SimpleNamespace(name="t", node="n", allocation="a1")
        return SimpleNamespace(placement=[task], state=JobState.RUNNING, region=None, parts=[])


async def told(agent: Rogue) -> list[str]:
    context = SimpleNamespace(stopping=asyncio.Event(), database=agent, bus=agent, measurements=None)
    return [text async for text in logs.follow_logs(cast(Context, context), "j", None, False, None, admitted)]


async def test_a_line_without_an_end_is_not_held() -> None:
    piece = LogAnswer(found=True, offset=1, text="x" * logs.LONGEST_LINE).encode()
    texts = await told(Rogue(piece, piece, piece))
    assert sum(text.count("x") for text in texts) == 3 * logs.LONGEST_LINE
    assert max(map(len, texts)) <= 2 * logs.LONGEST_LINE + len("t | \n")


@pytest.mark.parametrize("answer", [b"", b"[]", b'{"found": 1e999}', b"\xff", b"[" * 10_000])
async def test_an_answer_that_is_no_log_is_said_to_be_none(answer: bytes) -> None:
    assert await told(Rogue(answer)) == [
        "t | (the log on node n cannot be read: malformed: the node answers with what is no log)\n"
    ]
