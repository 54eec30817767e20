"""Two regions whose border links meet at one gateway here, one of them hostile: it can neither use nor name what
belongs to the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from ipaddress import IPv4Network
from typing import Any

import pytest
from memory_bus import MemoryBroker
from region_managers import Manager
from region_worlds import Region, block
from waiting import until

from ces_common.jobfile import JobFile
from ces_common.messages.pieces import Place
from ces_common.messages.regions import Gateway
from ces_common.messages.split import (
    BorderSetups,
    NearEnd,
    NearEnds,
    PartAnswer,
    PartCommit,
    PartCommitQuery,
    PartHold,
    PartHoldQuery,
    PartQuery,
    RemotePart,
)
from ces_federation.border_links import setups
from ces_federation.peers import BorderLink

FILE = JobFile.model_validate(
    {
        "name": "x",
        "tenant": "red",
        "tasks": [{"name": "w", "replicas": 2, "command": ["true"]}],
        "flows": {"topology": "ring", "bandwidth": {"min": "1Mbit", "max": "2Mbit"}},
    }
)
TRUST = {"accept": ["red"], "tenants": {"red": "guests"}}
REMOTE = f"{1:026}"
ABOUT: dict[str, Any] = {"job": "job-1", "attempt": 1, "part": 1}


@pytest.fixture
async def regions(broker: MemoryBroker) -> AsyncIterator[dict[str, Region]]:
    """The honest b and the hostile c end at gw, a node of a."""
    made = {name: Region(name, broker, "abc", **TRUST) for name in "abc"}
    for name in "bc":
        border = BorderLink(gateway="gw", there=f"edge-{name}", bandwidth=10**7)
        made["a"].peers[name] = made["a"].peers[name].model_copy(update={"border": border})
    for region in made.values():
        await region.start()
    near = [NearEnd(region=name, subnet=IPv4Network("10.64.1.0/24"), network="tc") for name in "bc"]
    await Manager(made["a"]).answers("borders", BorderSetups, NearEnds(items=near))
    for _ in range(2):  # by the second time it is known what the manager has set up
        for region in made.values():
            await region.federation.tell()
    await until(lambda: all(len(each.federation.board.usable(0.0)) == 2 for each in made.values()))
    yield made
    for region in made.values():
        await region.close()


class PartManager(Manager):
    """``region-`` is no part of what is asked about parts."""

    async def answers(self, operation: str, model: Any, *answers: Any) -> None:
        async def answer(message: Any) -> bytes:
            self.asked.append((operation, model.model_validate_json(message.data)))
            return bytes(answers[0].encode())

        await self.region.manager_says(operation, answer)


@pytest.fixture
async def here(regions: dict[str, Region]) -> PartManager:
    """The manager of a, which would do as it is told."""
    manager = PartManager(regions["a"])
    await manager.answers("part-hold", PartHoldQuery, PartAnswer(fate="held", remote=REMOTE))
    await manager.answers("part-commit", PartCommitQuery, PartAnswer(fate="committed", remote=REMOTE))
    await manager.answers("part-status", PartQuery, PartAnswer(fate="unknown", over=True))
    await manager.answers("part-release", PartQuery, PartAnswer(fate="unknown", over=True))
    return manager


async def asked(regions: dict[str, Region], word: str, question: Any, who: str = "c") -> PartAnswer:
    answer = await regions[who].federation.asker.ask("a", word, question, PartAnswer, 2.0)
    assert answer is not None
    return answer


def holding(region: str) -> PartHold:
    crossings = [
        {"src": src, "dst": dst, "rate": 10**6, "region": region} for src, dst in (("w-0", "w-1"), ("w-1", "w-0"))
    ]
    return PartHold.model_validate({**ABOUT, "file": FILE, "piece": {"tasks": ["w-0"], "crossings": crossings}})


async def test_it_holds_nothing_on_the_others_border_link(regions: dict[str, Region], here: PartManager) -> None:
    answer = await asked(regions, "part-hold", holding("b"))
    assert (answer.fate, answer.over) == ("released", True)
    assert "cross to that region alone" in str(answer.reason)
    assert here.asked == []
    assert (await asked(regions, "part-hold", holding("c"))).fate == "held"
    assert (await asked(regions, "part-hold", holding("b"), who="b")).fate == "held"
    assert [said.home for _, said in here.asked] == ["c", "b"]


@pytest.mark.parametrize(("region", "address"), [("b", 1), ("c", 1), ("a", 1), ("a", 0)])
async def test_it_leads_no_flow_to_the_others_addresses(
    regions: dict[str, Region], here: PartManager, region: str, address: int
) -> None:
    """Nor to those of the region that it asks, whichever region it says that they are in."""
    there = block("ab"[address])[7]
    place = Place.model_validate({"task": "w-1", "region": region, "address": there, "port": 1})
    answer = await asked(regions, "part-commit", PartCommit(**ABOUT, remote=REMOTE, places=[place]))
    assert answer.fate == "unknown"
    assert here.operations() == ["part-status"]


async def test_it_says_nothing_of_the_others_parts(regions: dict[str, Region], here: PartManager) -> None:
    """Of a part that b holds, it knows all that there is to know: it is asked for in its own name all the same."""
    await asked(regions, "part-release", RemotePart(**ABOUT, remote=REMOTE))
    assert here.last("part-release").home == "c"


async def test_it_is_told_of_its_own_end_alone(regions: dict[str, Region]) -> None:
    told = {name: regions[name].federation.board.usable(0.0)["a"].gateway for name in "bc"}
    assert {name: end.there for name, end in told.items() if end is not None} == {"b": "edge-b", "c": "edge-c"}


@pytest.mark.parametrize(
    ("gateway", "subnet"), [("edge-b", "10.66.3.0/24"), ("edge-c", "10.65.3.0/24"), ("edge-b", "10.65.3.0/24")]
)
async def test_what_it_tells_of_its_end_names_neither_the_others_gateway_nor_its_addresses(
    regions: dict[str, Region], gateway: str, subnet: str
) -> None:
    summaries = regions["a"].federation.board.usable(0.0)
    claims = Gateway.model_validate(
        {"gateway": gateway, "there": "gw", "subnet": subnet, "network": "tc", "bandwidth": 10**9}
    )
    summaries["c"] = summaries["c"].model_copy(update={"gateway": claims})
    ends = {setup.region: setup.far for setup in setups(regions["a"].peers, summaries)}
    assert ends["c"] is None
    honest = claims.model_copy(update={"gateway": "edge-c", "subnet": IPv4Network("10.66.3.0/24")})
    summaries["c"] = summaries["c"].model_copy(update={"gateway": honest})
    assert {setup.region: setup.far is None for setup in setups(regions["a"].peers, summaries)} == {
        "b": True,
        "c": False,
    }
