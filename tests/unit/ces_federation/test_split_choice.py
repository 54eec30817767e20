from __future__ import annotations

from typing import Any

import pytest

from ces_common.jobfile import JobFile
from ces_common.messages.plans import FlowPlan
from ces_common.messages.regions import Totals
from ces_common.messages.split_queries import SplitAnswer
from ces_federation.split_choice import candidates, cpu_of, pieces

MBIT = 10**6
FILE = JobFile.model_validate(
    {
        "name": "x",
        "regions": ["any"],
        "tasks": [{"name": "w", "replicas": 4, "command": ["x"], "resources": {"cpu": "1", "memory": "1Gi"}}],
    }
)


def totals(*borders: str, cpu: int = 3000, free: int = 40 * MBIT, up: bool = True, **more: Any) -> Totals:
    said = [{"region": name, "total": 95 * MBIT, "free": free, "up": up} for name in borders]
    room = {"cpu": cpu, "memory": 2**33, "gpu": 0}
    return Totals.model_validate({"epoch": "e", "free": room, "largest": room, "borders": said, **more})


def asked(known: dict[str, Totals], refused: dict[str, int] | None = None, file: JobFile = FILE) -> list[list[str]]:
    others = [name for name in known if name != "home"]
    found = candidates(file, "home", known, others, refused or {})
    return [[room.name for room in query.regions] for query in found]


def test_regions_that_a_border_joins_with_home_both_ways_are_tried_the_widest_first() -> None:
    known = {
        "home": totals("b", "c", "d", free=90 * MBIT),
        "b": totals("home", "c"),
        "c": totals("b", free=90 * MBIT),  # no way back home
        "d": totals("home", free=60 * MBIT),
    }
    assert asked(known) == [["d", "home"], ["b", "home"]]


@pytest.mark.parametrize("there", [totals(), totals("home", up=False), totals("home", cpu=999)])
def test_one_without_a_way_or_without_room_for_the_rest_is_not(there: Totals) -> None:
    assert asked({"home": totals("b"), "b": there}) == []


def test_only_regions_that_the_job_names_and_that_take_its_tenant() -> None:
    known = {"home": totals("b"), "b": totals("home")}
    assert asked(known, file=FILE.model_copy(update={"regions": ["c"]})) == []
    assert asked(known, file=FILE.model_copy(update={"regions": ["b"]})) == [["b", "home"]]
    assert candidates(FILE, "home", known, [], {}) == []


def test_nobody_is_asked_for_the_whole_and_after_a_no_for_less_than_before() -> None:
    known = {"home": totals("b", cpu=9000), "b": totals("home", cpu=9000)}
    [query] = candidates(FILE, "home", known, ["b"], {"b": 3000})
    assert {room.name: room.free.cpu for room in query.regions} == {"b": 2999, "home": 3999}
    assert candidates(FILE, "home", known, ["b"], {"b": 1000, "home": 1000}) == []


def test_each_region_gets_its_tasks_and_both_ends_of_what_crosses() -> None:
    flows = [
        FlowPlan(src="w-0", dst="w-1", rate=5, path=["a"]),
        FlowPlan(src="w-1", dst="w-2", rate=7, path=["a", "b"]),
        FlowPlan(src="w-2", dst="w-0", rate=9, path=["b", "a"]),
    ]
    found = pieces(SplitAnswer(regions={"w-0": "a", "w-1": "a", "w-2": "b"}, flows=flows))
    assert {name: piece.tasks for name, piece in found.items()} == {"a": ["w-0", "w-1"], "b": ["w-2"]}
    for name, other in (("a", "b"), ("b", "a")):
        assert [(c.src, c.dst, c.rate, c.region) for c in found[name].crossings] == [
            ("w-1", "w-2", 7, other),
            ("w-2", "w-0", 9, other),
        ]
    assert cpu_of(FILE, found["a"]) == 2000


def test_a_flow_that_would_pass_a_third_region_is_no_split() -> None:
    answer = SplitAnswer(
        regions={"w-0": "a", "w-1": "c"}, flows=[FlowPlan(src="w-0", dst="w-1", rate=5, path=["a", "b", "c"])]
    )
    with pytest.raises(ValueError, match="passes through"):
        pieces(answer)
