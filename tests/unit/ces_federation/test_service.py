from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from memory_bus import MemoryBroker
from region_worlds import TOTALS, Region
from waiting import until

from ces_common import subjects
from ces_common.messages.regions import RegionList
from ces_federation.board import OLD_S


@pytest.fixture
async def regions(broker: MemoryBroker) -> AsyncIterator[dict[str, Region]]:
    made = {name: Region(name, broker, "abc", accept=["red"], tenants={"red": "guests"}) for name in "abc"}
    for region in made.values():
        await region.start()
    yield made
    for region in made.values():
        await region.close()


async def told(region: Region) -> dict[str, str]:
    raw = await region.bus.request(subjects.rpc("federation", "regions"))
    return {view.name: view.state for view in RegionList.model_validate_json(raw).items}


async def test_regions_hear_of_each_other_in_sums(regions: dict[str, Region]) -> None:
    a, b = regions["a"], regions["b"]
    assert await told(a) == {"a": "here", "b": "silent", "c": "silent"}
    await b.federation.tell()
    await until(lambda: bool(a.federation.board.usable(a.now)))
    raw = await a.bus.request(subjects.rpc("federation", "regions"))
    own, other, _ = RegionList.model_validate_json(raw).items
    assert other.summary == TOTALS
    assert other.accepts == ["red"]
    assert own.summary is None  # it has not asked its manager yet
    a.now += OLD_S + 1
    assert (await told(a))["b"] == "old"


async def test_a_region_whose_manager_is_away_says_nothing(regions: dict[str, Region]) -> None:
    a, b = regions["a"], regions["b"]
    await b.manager_says("region-totals", b"no totals")
    await b.federation.tell()
    await regions["c"].federation.tell()
    await until(lambda: bool(a.federation.board.usable(a.now)))
    assert a.federation.board.usable(a.now).keys() == {"c"}
    assert b.federation.missing() == "the manager's totals"
