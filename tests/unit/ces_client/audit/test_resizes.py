"""The auditor follows jobs from size to size: what is held meanwhile, and every lie about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from audit_logs import START, Fact, allocation, done, found, job, plan, started

from ces_client.audit import Inventory, JobRequest
from ces_client.audit_inputs import request_of
from ces_common.jobfile import JobFile

EACH = (400, 10, 0)
ASKED = JobRequest({"t-0": EACH}, elastic="t", sizes=range(1, 5))
INVENTORY = Inventory(links={("a", "b"): 100, ("b", "a"): 100}, jobs={"j": ASKED})


def resized(nodes: str = "aab", rate: int = 60, **more: Any) -> Fact:
    """From two workers to three, of which the first sends to the last."""
    _, data = plan(2, nodes=[nodes[0], nodes[-1]], rate=rate)
    places = [
        {"id": f"j2{i}", "task": f"t-{i}", "node": node, "address": f"10.9.{i}.2", "port": 1}
        for i, node in enumerate(nodes)
    ]
    flow = data["flows"][0] | {"dst": f"t-{len(nodes) - 1}"}
    committed = {"resize": "r", "job": "j", "attempt": 2, "before": 2, "size": len(nodes)}
    return "resize.committed", committed | {"allocations": places, "flows": [flow]} | more


def ended(done: bool = True) -> Fact:
    return "resize.ended", {"resize": "r", "job": "j", "attempt": 2, "done": done}


def pending(nodes: str = "aab") -> list[Fact]:
    return [allocation(i, "pending", None, attempt=2, nodes=nodes) for i in range(len(nodes))]


STOPS = [job("resizing", "running"), *(allocation(i, "stopping", "running") for i in (0, 1))]
GONE = [allocation(i, "stopped", "stopping") for i in (0, 1)]
RUNS = [
    job("starting", "resizing", 2),
    *(allocation(i, "running", "pending", attempt=2, nodes="aab") for i in range(3)),
    job("running", "starting", 2),
    *(allocation(i, "succeeded", "running", attempt=2, nodes="aab") for i in range(3)),
    job("succeeded", "running", 2),
]
GROWN = [*START, *started(), resized(), *STOPS, *GONE, ended(), *pending(), *RUNS]


def test_a_job_that_grows_holds_never_more_than_the_larger_of_both_sizes() -> None:
    """Two of 400 millicores are on a in the end, of 1000; both sizes together would be three, and 110 on the link."""
    assert found(GROWN, INVENTORY) == ""


def test_a_resize_that_came_to_nothing_gives_everything_back() -> None:
    story = [*START, *started(), resized(), *STOPS, job("rescheduling", "resizing"), ended(False), *GONE]
    story += [job("queued", "rescheduling", 2), *started(2), *done(2)]
    assert found(story, INVENTORY) == ""


@pytest.mark.parametrize(
    ("nodes", "rate", "why"),
    [
        ("aaab", 60, "cpu of node a: 1200 of 1000 is overbooked"),
        ("aab", 97, "link a -> b: 97 of 100 is overbooked"),
    ],
)
def test_what_goes_beyond_what_there_is(nodes: str, rate: int, why: str) -> None:
    assert why in found([*START, *started(), resized(nodes, rate)], INVENTORY)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ([*START, *started(), resized(attempt=3)], "a resize to attempt 3 while j is running at 1"),
        ([*START, *started(), resized(before=3)], "job j is resized from 3 to the same"),
        ([*START, *started(), resized(size=4)], "job j is said to have size 4 with the tasks ['t-0', 't-1', 't-2']"),
        ([*START, *started(), resized(before=1)], "job j is said to have size 1 with the tasks ['t-0', 't-1']"),
        ([*START, *started(), resized("bba")], "t-0 of job j goes from a to b, away from its checkpoints"),
        ([*START, *started(), ended()], "a resize of j ends that was not committed"),
        ([*START, *started(), resized(), *STOPS, GONE[0], ended()], "its new size while something of its former one"),
        ([*START, *started(), resized(), *STOPS, *RUNS[:1]], "job j is at attempt 2, not 1"),
        ([*START, plan(nodes="ab"), resized()], "a resize to attempt 2 while j is queued at 1"),
    ],
)
def test_lies_about_a_resize(facts: list[Fact], why: str) -> None:
    assert why in found(facts, INVENTORY)


def test_tasks_of_an_elastic_group_are_counted_up_from_the_first() -> None:
    asked = JobRequest({"t-0": EACH, "ps-0": (100, 1, 0)}, elastic="t", sizes=[2])
    assert asked.lists(["ps-0", "t-0", "t-1"])
    assert not asked.lists(["ps-0", "t-0"])
    assert not asked.lists(["ps-0", "t-0", "t-1", "t-2"])
    assert not asked.lists(["t-0", "t-1"])
    assert not asked.lists(["ps-0", "t-0", "t-2"])
    assert asked.amounts("t-7") == EACH
    assert asked.amounts("ps-0") == (100, 1, 0)


def test_a_size_that_the_file_does_not_allow_is_found_at_the_start_and_later() -> None:
    some = replace(INVENTORY, jobs={"j": replace(ASKED, sizes=[2, 4])})
    assert "job j asks for ['t-0'], of t any of [2, 4], the plan has ['t-0', 't-1', 't-2']" in found(GROWN, some)
    some = replace(INVENTORY, jobs={"j": replace(ASKED, sizes=[3, 4])})
    assert "of t any of [3, 4], the plan has ['t-0', 't-1']" in found([*START, *started()], some)


def test_a_job_that_is_not_malleable_is_not_resized() -> None:
    rigid = replace(INVENTORY, jobs={"j": JobRequest({"t-0": EACH, "t-1": EACH})})
    assert "job j is resized, which is not malleable" in found([*START, *started(), resized()], rigid)


FILE = {
    "name": "j",
    "tasks": [{"name": "t", "command": ["x"], "resources": {"cpu": "400m", "memory": "10"}}],
    "elastic": {"group": "t", "sizes": [2, 4]},
}


def test_the_sizes_of_a_job_file_are_known() -> None:
    asked = request_of(JobFile.model_validate(FILE))
    assert (asked.elastic, list(asked.sizes)) == ("t", [2, 4])
    assert asked.lists(["t-0", "t-1"])
    assert not asked.lists(["t-0"])
    fixed = request_of(JobFile.model_validate({**FILE, "elastic": None}))
    assert (fixed.elastic, list(fixed.sizes)) == (None, [])
    assert fixed.lists(["t-0"])
