"""What a task of a pipeline is told, and which requests come where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ces_workloads.peers import BadEnvironment
from ces_workloads.pipeline.ways import Duties, Way, duties_of, names_of, passes

LOOP: dict[str, Any] = {
    "name": "loop",
    "rate": 5,
    "deadline_us": 60_000,
    "steps": ["client-0", "detect-0", "client-0"],
    "messages": [10_000, 1000],
    "answered": True,
}
KEPT = LOOP | {"name": "kept", "deadline_us": None, "steps": ["client-0", "detect-0", "disk-0"]}


def told(task: str, *ways: dict[str, Any], work: object = None) -> Duties:
    return duties_of(task, {"CES_REQUESTS": json.dumps({"work": work, "requests": list(ways)})})


def test_a_sender_and_a_server() -> None:
    client, detect = told("client-0", LOOP, KEPT), told("detect-0", LOOP, KEPT, work={"us": 5000, "class": "matrix"})
    loop = client.ways["loop"]
    assert loop == Way("loop", 5.0, 60.0, ("client-0", "detect-0", "client-0"), (10_000, 1000))
    assert client.sends == [loop, client.ways["kept"]]
    assert (client.work_us, client.work_class) == (0, None)
    assert detect.sends == []
    assert (detect.work_us, detect.work_class) == (5000, "matrix")
    assert detect.origins == client.origins == {"client-0"}
    assert (client.after("client-0"), detect.after("client-0")) == (["detect-0"], ["client-0", "disk-0"])
    assert detect.after("other-0") == []


def test_the_answer_is_not_worked_on_by_its_sender() -> None:
    loop, kept = told("client-0", LOOP, KEPT).ways.values()
    assert (loop.returns, kept.returns) == (True, False)
    assert [loop.works_at(i) for i in range(3)] == [True, True, False]
    assert kept.works_at(2)


def test_requests_come_to_the_task_of_their_step_only() -> None:
    loop = told("client-0", LOOP).ways["loop"]
    assert passes(loop, 1, "detect-0")
    assert passes(loop, 2, "client-0")
    assert not passes(loop, 0, "client-0")
    assert not passes(loop, 3, "client-0")
    assert not passes(loop, 1, "client-0")


@pytest.mark.parametrize(
    "text", ["[", "[]", "{}", json.dumps({"work": None, "requests": [LOOP | {"messages": [1]}]}), '{"requests": 3}']
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(BadEnvironment, match="CES_REQUESTS makes no sense"):
        duties_of("client-0", {"CES_REQUESTS": text})


def test_a_task_that_no_request_passes_is_told_so() -> None:
    with pytest.raises(BadEnvironment, match="no request of the application passes client-0; name it in the chain"):
        duties_of("client-0", {})


def test_ways_for_people() -> None:
    ways = told("client-0", LOOP).sends
    assert names_of(ways) == "loop (client-0 -> detect-0 -> client-0, 5/s)"
