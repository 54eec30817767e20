from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from ces_common.jobfile import JobFile
from ces_common.messages.regions import BidAnswer, Room, Summary
from ces_federation.choice import Backoff, in_order, need_of, worth_asking

FILE = {
    "name": "x",
    "regions": ["any"],
    "tasks": [
        {"name": "w", "replicas": 3, "command": ["true"], "resources": {"cpu": "1", "memory": "1Gi"}},
        {"name": "ps", "command": ["true"], "resources": {"cpu": "500m", "memory": "2Gi", "gpu": 1}},
    ],
}
ROOMY: dict[str, Any] = {
    "epoch": "e",
    "block": "10.65.0.0/16",
    "accepts": ["default"],
    "free": {"cpu": 8000, "memory": 2**34, "gpu": 2},
    "total": {"cpu": 16000, "memory": 2**35, "gpu": 4},
    "largest": {"cpu": 2000, "memory": 2**32, "gpu": 1},
}


def summary(name: str, **more: Any) -> Summary:
    return Summary.model_validate({**ROOMY, "region": name, **more})


def asked(*summaries: Summary, **more: Any) -> list[str]:
    need = need_of(JobFile.model_validate({**FILE, **more}))
    return worth_asking(need, {each.region: each for each in summaries})


def test_a_job_needs_all_of_its_tasks_and_room_for_the_largest() -> None:
    need = need_of(JobFile.model_validate(FILE))
    assert need.whole == Room(cpu=3500, memory=5 * 2**30, gpu=1)
    assert need.largest == Room(cpu=1000, memory=2 * 2**30, gpu=1)


@pytest.mark.parametrize(
    "lacks",
    [
        {"accepts": []},
        {"accepts": ["red"]},
        {"free": {"cpu": 3499, "memory": 2**34, "gpu": 2}},
        {"free": {"cpu": 8000, "memory": 2**32, "gpu": 2}},
        {"free": {"cpu": 8000, "memory": 2**34, "gpu": 0}},
        {"largest": {"cpu": 999, "memory": 2**32, "gpu": 1}},
        {"largest": {"cpu": 2000, "memory": 2**30, "gpu": 1}},
    ],
)
def test_a_region_that_cannot_have_room_or_does_not_want_it_is_not_asked(lacks: dict[str, Any]) -> None:
    assert asked(summary("b", **lacks), summary("c")) == ["c"]


def test_only_regions_that_the_file_names_are_asked() -> None:
    assert asked(summary("b"), summary("c"), regions=["c", "d"]) == ["c"]


def test_at_most_three_are_asked_the_shortest_queue_first() -> None:
    queues = {"b": 3, "c": 1, "d": 0, "e": 2, "f": 9}
    assert asked(*(summary(name, queued=length) for name, length in queues.items())) == ["d", "c", "e"]
    fuller = summary("b", free={"cpu": 4000, "memory": 2**34, "gpu": 2})
    assert asked(fuller, summary("c")) == ["c", "b"]


def test_the_best_bid_is_taken_first_and_none_without_room() -> None:
    bids = {
        "b": BidAnswer(feasible=True, composite=0.5),
        "c": BidAnswer(refusal="no room"),
        "d": BidAnswer(feasible=True, composite=0.9),
        "e": BidAnswer(feasible=True, composite=0.5),
    }
    assert in_order(bids) == ["d", "b", "e"]


def test_what_nobody_takes_is_offered_ever_more_rarely() -> None:
    backoff, now, tries = Backoff(1.0, 30.0), 0.0, []
    while now < 200:
        if "j" not in backoff.waiting(now):
            tries.append(now)
            backoff.refused("j", now)
        now += 0.5
    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert gaps[:5] == [1, 2, 4, 8, 16]
    assert set(gaps[5:]) == {30}
    backoff.waiting(now + 100)  # it was not offered any more: it runs, or is over
    backoff.refused("j", now + 100)
    assert backoff.waiting(now + 100.9) == ["j"]
    assert backoff.waiting(now + 101) == []
