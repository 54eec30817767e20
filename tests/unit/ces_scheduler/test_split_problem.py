from __future__ import annotations

from typing import Any

import pytest

from ces_common.jobfile import JobFile
from ces_common.messages.split_queries import SplitAnswer, SplitQuery
from ces_core.search.solver import SEARCH
from ces_scheduler.split_problem import split

MBIT = 10**6
ROOM = {"cpu": 3000, "memory": 2**33, "gpu": 0}
BORDERS = [{"src": "north", "dst": "south", "free": 40 * MBIT}, {"src": "south", "dst": "north", "free": 40 * MBIT}]


def query(rooms: dict[str, dict[str, int]], borders: list[dict[str, Any]] = BORDERS, **more: Any) -> SplitQuery:
    file = {
        "name": "x",
        "regions": ["any"],
        "tasks": [{"name": "w", "replicas": 4, "command": ["x"], "resources": {"cpu": "1", "memory": "1Gi"}}],
        "flows": {"topology": "ring", "bandwidth": {"min": "10Mbit", "max": "20Mbit"}},
        **more,
    }
    regions = [
        {"name": name, "free": {**ROOM, **room}, "largest": {"cpu": 1000, "memory": 2**31, "gpu": 0, **room}}
        for name, room in rooms.items()
    ]
    for region in regions:
        region["largest"]["cpu"] = min(region["largest"]["cpu"], region["free"]["cpu"])  # type: ignore[index]
    return SplitQuery.model_validate({"job": JobFile.model_validate(file), "regions": regions, "borders": borders})


def test_a_gang_that_neither_has_room_for_is_split_and_its_flows_fit_over_the_border() -> None:
    answer = split(query({"north": {}, "south": {}}), SEARCH)
    assert answer.refusal is None
    assert set(answer.regions.values()) == {"north", "south"}
    assert max(list(answer.regions.values()).count(name) for name in ("north", "south")) <= 3
    for one, other in (("north", "south"), ("south", "north")):
        over = [flow for flow in answer.flows if flow.path == [one, other]]
        assert over
        assert sum(flow.rate for flow in over) <= 40 * MBIT
        assert all(10 * MBIT <= flow.rate <= 20 * MBIT for flow in over)


def test_a_border_that_carries_too_little_splits_nothing() -> None:
    narrow = [{**each, "free": 9 * MBIT} for each in BORDERS]
    answer = split(query({"north": {}, "south": {}}, narrow), SEARCH)
    assert answer.regions == {}
    assert answer.refusal


def test_without_a_border_one_without_flows_may_be_split_and_one_with_flows_not() -> None:
    assert split(query({"north": {}, "south": {}}, []), SEARCH).regions == {}
    alone = split(query({"north": {}, "south": {}}, [], flows={}), SEARCH)
    assert set(alone.regions.values()) == {"north", "south"}


def test_what_one_region_could_hold_by_its_sums_is_not_split() -> None:
    answer = split(query({"north": {"cpu": 9000}, "south": {"cpu": 100}}), SEARCH)
    assert answer == SplitAnswer(refusal="one region has room for all of it, by its sums")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            {
                "tasks": [{"name": "w", "command": ["x"], "resources": {"cpu": "1", "memory": "1Gi", "gpu": "500m"}}],
                "flows": {},
            },
            "shares of GPUs",
        ),
    ],
)
def test_what_is_never_split_says_why(more: dict[str, Any], why: str) -> None:
    assert why in str(split(query({"north": {}, "south": {}}, **more), SEARCH).refusal)
