"""Which nodes may run a task, and what is said where a job's data is missing."""

from typing import Any

import pytest
from cluster_state import MBIT, job, node, view_of, wire
from confinements import APART, TOGETHER
from queue_looks import decided

from ces_common.jobfile import Flow, Task
from ces_common.messages.confinement import REMEDY
from ces_common.messages.records import JobRecord
from ces_scheduler.eligibility import refusal
from ces_scheduler.offer import offer_of

LINE = [*wire("a", "s"), *wire("s", "b")]
SECRET = {"secrets": {"token": "hub"}}


def task(**fields: object) -> Task:
    return Task.model_validate({"name": "t", "rank": 0, "cpu": 1, "memory": 1} | fields)


@pytest.mark.parametrize(
    ("record", "asks", "why"),
    [
        (node("a"), {}, None),
        (node("a", state="unreachable"), {}, "unreachable"),
        (node("a", cordoned=True), {}, "cordoned"),
        (node("a", reclaimed=True), {}, "reclaimed by its owner"),
        (node("a", arch="arm64"), {"arch": "amd64"}, "arch is arm64, not amd64"),
        (node("a", arch=""), {"arch": "amd64"}, "arch is unknown, not amd64"),
        (node("a", arch="arm64"), {"arch": "arm64"}, None),
        (node("a"), {"labels": {"site": "roof"}}, "label site is absent, not roof"),
        (node("a", labels={"site": "cellar"}), {"labels": {"site": "roof"}}, "label site is cellar, not roof"),
        (node("a", labels={"site": "roof", "x": "y"}), {"labels": {"site": "roof"}}, None),
        (node("a", confinement=APART), SECRET, None),
        (node("a"), SECRET, "has not told yet how its workers are kept apart"),
        (node("a", confinement=TOGETHER), SECRET, f"gives no worker a user of its own: {REMEDY}"),
        (node("a", confinement=TOGETHER), {}, None),
    ],
)
def test_refusals_say_why(record: object, asks: dict[str, object], why: str | None) -> None:
    assert refusal(task(**asks), record) == why


def reading(*datasets: str) -> JobRecord:
    """A job that waits, and reads data of node a."""
    flow = Flow(src="@a", dst="w-0", min=MBIT, max=20 * MBIT, datasets=list(datasets))
    return job("j", tasks=1).model_copy(update={"flows": [flow]})


def nodes_with(**data: Any) -> list[Any]:
    return [node("b", 3), node("a", 1, **data), node("s", 2, cpu=0, memory=0)]


@pytest.mark.parametrize(
    ("data", "why", "forever"),
    [
        ({}, "offers no dataset mnist", True),
        ({"datasets": ["words"]}, "offers no dataset mnist", True),
        ({"datasets": ["mnist"], "state": "unreachable"}, "is unreachable", False),
        ({"state": "unreachable"}, "is unreachable", False),
    ],
)
def test_data_that_is_not_there_is_the_reason(data: dict[str, Any], why: str, forever: bool) -> None:
    offer = offer_of(view_of(nodes_with(**data), LINE))
    decision = decided(reading("mnist"), offer)
    assert decision.reason is not None
    assert (decision.reason.code, decision.reason.where) == ("no-data", "a")
    assert decision.reason.text == f"node a, where data of w-0 lies, {why}"
    assert decision.reason.forever == forever, "a node that is away may come back by itself"
    mended = offer_of(view_of(nodes_with(datasets=["mnist"]), LINE), offer)
    assert not mended.nothing_freed_since(offer), "then it is worth another look"


def test_data_of_a_node_that_nobody_knows() -> None:
    decision = decided(reading("mnist"), offer_of(view_of([node("b", 3)], [])))
    assert decision.reason is not None
    assert decision.reason.text == "node a, where data of w-0 lies, has not joined"
    assert decision.reason.forever
    nothing = decided(reading(), offer_of(view_of(nodes_with(), LINE)))
    assert nothing.reason is not None
    assert nothing.reason.text.endswith("offers no data")
