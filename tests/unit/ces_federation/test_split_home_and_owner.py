"""A job's way over two regions, by the services of both; their managers are played here, each with books of its own."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from memory_bus import MemoryBroker
from region_worlds import TOTALS, Region
from waiting import until

from ces_common.bus.port import Message, RemoteError
from ces_common.jobfile import JobFile
from ces_common.messages.pieces import Piece, Place, TaskPlace
from ces_common.messages.plans import FlowPlan
from ces_common.messages.regions import Border, OfferedJob, Refusal, Room
from ces_common.messages.split import (
    PartAnswer,
    PartCommit,
    PartCommitQuery,
    PartHold,
    PartHoldQuery,
    PartQuery,
    PartReports,
    PartsToAsk,
    PartToAsk,
    SplitDecision,
)
from ces_common.messages.split_queries import SplitAnswer
from ces_federation import split_home as split_home_module
from ces_federation import split_owner as split_owner_module

FILE = JobFile.model_validate(
    {
        "name": "x",
        "tenant": "red",
        "priority": 90,
        "regions": ["any"],
        "tasks": [{"name": "w", "replicas": 3, "command": ["true"], "resources": {"cpu": "2"}}],
        "flows": {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": "2Mbit"}},
    }
)
OFFERED = OfferedJob(job="job-1", attempt=1, file=FILE)
TRUST = {"accept": ["red"], "tenants": {"red": "guests"}, "max_priority": 40}
SPLIT = SplitAnswer(
    regions={"w-0": "a", "w-1": "a", "w-2": "b"},
    flows=[
        FlowPlan(src="w-0", dst="w-1", rate=2_000_000, path=["a"]),
        FlowPlan(src="w-1", dst="w-2", rate=2_000_000, path=["a", "b"]),
        FlowPlan(src="w-2", dst="w-0", rate=1_500_000, path=["b", "a"]),
    ],
    composite=0.5,
)
JOINED = {"a": "b", "b": "a"}


class Books:
    """A manager, as far as parts go. ``refuses``: why it holds none, ``refusals`` times; ``decisions``: what it was
    told as a home."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.held: dict[tuple[str, int, int], PartHoldQuery] = {}
        self.words: list[str] = []
        self.decisions: list[SplitDecision] = []
        self.committed: list[PartCommitQuery] = []
        self.refuses: str | None = None
        self.refusals = math.inf
        self.refuses_decision: str | None = None
        self.to_ask: list[PartToAsk] = []
        self.reports: list[Any] = []
        self.plan: list[SplitAnswer] = [SPLIT]

    async def begin(self) -> None:
        operations = {
            "part-hold": self.hold,
            "part-commit": self.commit,
            "part-release": self.release,
            "part-start": self.start,
            "part-status": self.status,
            "split-plan": self.solve,
            "split-decide": self.decide,
            "split-open": self.open,
            "split-report": self.report,
        }
        for operation, act in operations.items():
            await self.region.manager_says(operation, act)

    async def hold(self, message: Message) -> bytes:
        asked = PartHoldQuery.model_validate_json(message.data)
        if self.refuses and self.refusals > 0:
            self.refusals -= 1
            raise RemoteError("refused", self.refuses)
        self.held[asked.job, asked.attempt, asked.part] = asked
        return self._said("held", asked).encode()

    def _said(self, fate: str, asked: PartHoldQuery) -> PartAnswer:
        return PartAnswer.model_validate(
            {
                "fate": fate,
                "remote": f"{ord(self.region.name):026}",
                "places": [
                    TaskPlace.model_validate({"task": task, "address": self.address(i), "port": 29400})
                    for i, task in enumerate(asked.piece.tasks)
                ],
            }
        )

    def address(self, number: int) -> str:
        return f"10.{64 + ord(self.region.name) - ord('a')}.0.{number + 2}"

    async def commit(self, message: Message) -> bytes:
        self.committed.append(PartCommitQuery.model_validate_json(message.data))
        return PartAnswer(fate="committed", remote=self.committed[-1].remote).encode()

    async def release(self, message: Message) -> bytes:
        asked = PartQuery.model_validate_json(message.data)
        self.words.append("release")
        self.held.pop((asked.job, asked.attempt, asked.part), None)
        return PartAnswer(fate="released", over=True).encode()

    async def start(self, message: Message) -> bytes:
        self.words.append("start")
        return PartAnswer(fate="committed", ready=True, started=True).encode()

    async def status(self, message: Message) -> bytes:
        return PartAnswer(fate="committed", ready=True, started=True).encode()

    async def solve(self, _: Message) -> bytes:
        return (self.plan.pop(0) if len(self.plan) > 1 else self.plan[0]).encode()

    async def decide(self, message: Message) -> bytes:
        self.decisions.append(SplitDecision.model_validate_json(message.data))
        return Refusal(refusal=self.refuses_decision).encode()

    async def open(self, _: Message) -> bytes:
        return PartsToAsk(items=self.to_ask).encode()

    async def report(self, message: Message) -> bytes:
        self.reports += PartReports.model_validate_json(message.data).items
        return Refusal().encode()


@pytest.fixture
async def regions(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, Region]]:
    for name in ("HELD_S", "WORD_S"):
        monkeypatch.setattr(split_home_module, name, 0.3)
    monkeypatch.setattr(split_home_module, "FIRST_S", 0.001)
    monkeypatch.setattr(split_owner_module, "LOOK_S", 0.001)
    made = {name: Region(name, broker, "ab", **TRUST) for name in "ab"}
    for name, region in made.items():
        await region.start()
        border = Border(region=JOINED[name], total=9_000_000, free=9_000_000)
        room = Room(cpu=4000, memory=2**33)
        await region.manager_says(
            "region-totals", TOTALS.model_copy(update={"borders": [border], "free": room}).encode()
        )
    for region in made.values():
        await region.federation.tell()
    await until(lambda: all(len(each.federation.board.usable(0.0)) == 1 for each in made.values()))
    yield made
    for region in made.values():
        await region.close()


@pytest.fixture
async def books(regions: dict[str, Region]) -> dict[str, Books]:
    made = {name: Books(region) for name, region in regions.items()}
    for each in made.values():
        await each.begin()
    return made


async def split(regions: dict[str, Region], refused: dict[str, int] | None = None) -> str:
    return await regions["a"].federation.split_home.split(OFFERED, {} if refused is None else refused)


async def test_each_region_holds_its_own_part_and_then_it_is_decided(
    regions: dict[str, Region], books: dict[str, Books]
) -> None:
    assert await split(regions) == "placed"
    [here], [there] = books["a"].held.values(), books["b"].held.values()
    assert (here.part, here.piece.tasks, here.file.tenant, here.file.priority) == (0, ["w-0", "w-1"], "red", 90)
    assert (there.part, there.piece.tasks, there.file.tenant, there.file.priority) == (1, ["w-2"], "guests", 40)
    assert (here.home, there.home) == ("a", "a")
    [decision] = books["a"].decisions
    assert [(part.region, part.part, part.tasks) for part in decision.parts] == [
        ("a", 0, ["w-0", "w-1"]),
        ("b", 1, ["w-2"]),
    ]
    assert {place.task: (place.region, str(place.address)) for place in decision.places} == {
        "w-0": ("a", "10.64.0.2"),
        "w-1": ("a", "10.64.0.3"),
        "w-2": ("b", "10.65.0.2"),
    }
    assert books["b"].decisions == []
    assert books["a"].words == books["b"].words == []  # nothing starts yet


@pytest.mark.parametrize("who", ["a", "b"])
async def test_after_any_no_all_is_released_and_less_is_asked_for(
    regions: dict[str, Region], books: dict[str, Books], who: str
) -> None:
    books[who].refuses = "no room"
    refused: dict[str, int] = {}
    assert await split(regions, refused) == "not-held"
    assert refused == {who: 4000 if who == "a" else 2000}
    assert books["a"].held == books["b"].held == {}
    assert books["a"].decisions == []


async def test_a_decision_that_cannot_be_releases_all(regions: dict[str, Region], books: dict[str, Books]) -> None:
    books["a"].refuses_decision = "it is cancelled"
    assert await split(regions) == "not-decided"
    assert books["a"].held == books["b"].held == {}


async def test_a_region_that_does_not_answer_is_a_no(regions: dict[str, Region], books: dict[str, Books]) -> None:
    async def silence(_: Message) -> bytes:
        await asyncio.sleep(1)
        return b""

    await regions["b"].manager_says("part-hold", silence)
    assert await split(regions) == "not-held"
    assert books["a"].held == {}
    assert books["a"].decisions == []


async def test_without_a_split_nobody_is_asked_to_hold(regions: dict[str, Region], books: dict[str, Books]) -> None:
    books["a"].plan = [SplitAnswer(refusal="no place")]
    assert await split(regions) == "no-split"
    assert books["a"].held == books["b"].held == {}


async def test_it_is_tried_again_after_a_no_until_it_is_placed(
    regions: dict[str, Region], books: dict[str, Books]
) -> None:
    books["b"].refuses, books["b"].refusals = "no room yet", 1
    home = regions["a"].federation.split_home
    home.consider(OFFERED)
    home.consider(OFFERED)  # once at a time
    await until(lambda: len(books["a"].decisions) == 1)
    await until(lambda: home._trying == {})
    assert books["a"].words == ["release"]
    assert len(books["a"].held) == len(books["b"].held) == 1


def part_to_ask(region: str, word: str, part: int = 1) -> PartToAsk:
    place = {"task": "w-0", "region": "a", "address": "10.64.0.2", "port": 29400}
    return PartToAsk.model_validate(
        {"job": "job-1", "attempt": 1, "part": part, "remote": f"{part:026}", "region": region, "word": word}
        | {"places": [place] if word == "commit" else []}
    )


async def test_what_the_manager_wants_said_is_said_and_reported(
    regions: dict[str, Region], books: dict[str, Books]
) -> None:
    books["a"].to_ask = [part_to_ask("a", "status", 0), part_to_ask("b", "commit")]
    await regions["a"].federation.split_home.follow_all()
    await until(lambda: len(books["a"].reports) == 2)
    assert {(each.region, each.answer.fate) for each in books["a"].reports} == {("a", "committed"), ("b", "committed")}
    [committed] = books["b"].committed
    assert (committed.home, [place.task for place in committed.places]) == ("a", ["w-0"])


async def test_silence_is_reported_once_it_has_lasted(regions: dict[str, Region], books: dict[str, Books]) -> None:
    home = regions["a"].federation.split_home
    books["a"].to_ask = [part_to_ask("b", "status")]

    async def silence(_: Message) -> bytes:
        raise RemoteError("unavailable", "the database is away")

    await regions["b"].manager_says("part-status", silence)
    await home.follow_region("b", books["a"].to_ask)
    assert books["a"].reports == []
    regions["a"].now += 11
    await home.follow_region("b", books["a"].to_ask)
    assert [each.answer for each in books["a"].reports] == [None]


@pytest.mark.parametrize("address", ["10.64.0.9", "8.8.8.8", "10.66.0.1"])
async def test_a_home_leads_no_flow_to_addresses_that_the_region_does_not_have(
    regions: dict[str, Region], books: dict[str, Books], address: str
) -> None:
    """Region b is asked by a, which says that a task of region b, or of nobody's, is at these addresses."""
    place = Place.model_validate({"task": "w-0", "region": "b", "address": address, "port": 1})
    asked = PartCommit(job="job-1", attempt=1, part=1, remote=f"{1:026}", places=[place])
    answer = await regions["a"].federation.asker.ask("b", "part-commit", asked, PartAnswer, 2.0)
    assert answer is not None, "how it stands"
    assert books["b"].committed == []


async def test_a_tenant_that_is_not_accepted_holds_no_part(regions: dict[str, Region], books: dict[str, Books]) -> None:
    file = FILE.model_copy(update={"tenant": "blue"})
    hold = PartHold(job="job-1", attempt=1, part=1, file=file, piece=Piece(tasks=["w-2"]))
    answer = await regions["a"].federation.asker.ask("b", "part-hold", hold, PartAnswer, 0.3)
    assert answer is not None
    assert answer.fate == "released"
    assert "not accepted" in str(answer.reason)
    assert books["b"].held == {}
