"""The auditor follows CPU that changes in place: what is held meanwhile, and every lie about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from audit_logs import START, Fact, allocation, done, found, job, started

from ces_client.audit import Inventory, JobRequest
from ces_client.audit_inputs import request_of
from ces_common.jobfile import JobFile

ASKED = JobRequest({"t-0": (400, 10, 0)}, elastic="t", sizes=[2], cpu=(100, 900), suspendable=True)
INVENTORY = Inventory(links={("a", "b"): 100}, jobs={"j": ASKED})
RUNS = [*START, *started()]


def given(cpu: int, attempt: int = 1) -> Fact:
    return "cpu.committed", {"change": "c", "job": "j", "attempt": attempt, "cpu": cpu}


def released(cpu: int, which: int = 0, **more: Any) -> Fact:
    _, data = allocation(which, "running", "pending")
    named = {key: data[key] for key in ("allocation", "job", "task", "node")}
    return "cpu.released", named | {"attempt": 1, "cpu": cpu} | more


def test_what_is_given_up_is_held_until_it_is_released() -> None:
    """A job holds 900 of 1000 on each of two nodes, and gives up 600; another one of 700 begins beside it."""
    jobs = {"j": ASKED, "k": JobRequest({"t-0": (700, 10, 0), "t-1": (700, 10, 0)})}
    beside = replace(INVENTORY, jobs=jobs)
    other = [job("queued", None, name="k"), *started(name="k", number=7, rate=1), *done(name="k")]
    gives = [released(300), released(300, 1)]
    assert found([*RUNS, given(900), given(300), *gives, *other, *done()], beside) == ""
    for some in range(2):
        early = found([*RUNS, given(900), given(300), *gives[:some], *other, *done()], beside)
        assert ("cpu of node a: 1600 of 1000" in early, "cpu of node b: 1600 of 1000" in early) == (some == 0, True)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ([given(901)], "the workers of job j get 901, outside of 100 to 900"),
        ([given(500, attempt=2)], "the CPU of attempt 2 changes while j is running at 1"),
        ([job("paused", "running"), given(500)], "changes while j is paused at 1"),
        ([released(300)], "t-0 of j holds 300, had 400 and was to have None"),
        ([given(300), released(200)], "t-0 of j holds 200, had 400 and was to have 300"),
        ([given(500), released(500)], "t-0 of j holds 500, had 500 and was to have 500"),
        ([given(300), released(300, node="z")], "of j gives up CPU, which holds none there"),
        ([given(300), released(300, allocation="x")], "allocation x of j gives up CPU, which holds none there"),
    ],
)
def test_lies_about_a_change(facts: list[Fact], why: str) -> None:
    assert why in found([*RUNS, *facts], INVENTORY)


def begun(cpu: int | None) -> list[Fact]:
    """Its workers begin with so much."""
    (kind, data), *rest = started()
    assert kind == "plan.committed"
    return [(kind, data | {"allocations": [each | {"cpu_desired": cpu} for each in data["allocations"]]}), *rest]


def test_workers_begin_with_what_the_plan_says() -> None:
    assert found([*START, *begun(900), given(300), released(300), released(300, 1), *done()], INVENTORY) == ""
    assert found([*START, *begun(None), *done()], INVENTORY) == ""
    assert found([*START, *begun(200), *done()], INVENTORY) == ""
    assert "had 900 and was to have 900" in found([*START, *begun(900), released(400)], INVENTORY)
    small = replace(INVENTORY, nodes={})
    wide = replace(small, jobs={"j": replace(ASKED, cpu=(100, 2000))})
    assert "cpu of node a: 1001 of 1000 is overbooked" in found([*START, *begun(1001)], wide)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (ASKED, "the workers of job j get 901, outside of 100 to 900"),
        (replace(ASKED, cpu=None), "the CPU of job j changes, and its file does not let it"),
        (JobRequest({"t-0": (400, 10, 0), "t-1": (400, 10, 0)}), "t-0 of j is not elastic"),
    ],
)
def test_lies_about_a_beginning(request_: JobRequest, why: str) -> None:
    assert why in found([*START, *begun(901)], replace(INVENTORY, jobs={"j": request_}))


def test_what_does_not_fit() -> None:
    small = replace(INVENTORY, jobs={"j": replace(ASKED, cpu=(100, 2000))})
    assert "cpu of node a: 1001 of 1000 is overbooked" in found([*RUNS, given(1001)], small)
    rigid = replace(INVENTORY, jobs={"j": replace(ASKED, cpu=None)})
    assert "the CPU of job j changes, and its file does not let it" in found([*RUNS, given(500)], rigid)


def test_the_range_of_a_job_file_is_known() -> None:
    file = {
        "name": "j",
        "tasks": [{"name": "t", "command": ["x"], "resources": {"cpu": "400m"}}],
        "elastic": {"group": "t", "sizes": [2], "cpu": {"min": "100m", "max": "900m"}},
    }
    assert request_of(JobFile.model_validate(file)).cpu == (100, 900)
    file["elastic"] = {"group": "t", "sizes": [2]}
    assert request_of(JobFile.model_validate(file)).cpu is None
