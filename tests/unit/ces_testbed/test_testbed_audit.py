"""The auditor must see what it is there for: each test tells one lie and expects it to be found."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from ces_testbed.audit import Ground, audit

Log = list[dict[str, Any]]
GROUND = Ground(links={("a", "b"): 100}, tasks={"j": {"t-0": (600, 10, 0), "t-1": (600, 10, 0)}})


def numbered(facts: list[tuple[str, dict[str, Any]]]) -> Log:
    return [
        {"sequence": i, "id": f"e{i}", "type": f"ces.v1.{kind}", "time": f"2026-01-01T00:00:{i:02}+00:00", "data": data}
        for i, (kind, data) in enumerate(facts, start=1)
    ]


def node(name: str, change: str) -> tuple[str, dict[str, Any]]:
    return "node.changed", {"node": name, "change": change, "cpu": 1000, "memory": 100, "gpu": 0}


def job(state: str, previous: str | None, attempt: int = 1, name: str = "j") -> tuple[str, dict[str, Any]]:
    data = {"job": name, "name": name, "attempt": attempt, "state": state}
    return f"job.{state}", data | ({"previous": previous} if previous else {})


def allocation(
    which: int, state: str, previous: str | None, incarnation: int = 1, attempt: int = 1
) -> tuple[str, dict[str, Any]]:
    data = {
        "allocation": f"{attempt}{which}",
        "job": "j",
        "task": f"t-{which}",
        "node": "ab"[which],
        "incarnation": incarnation,
        "state": state,
    }
    return f"allocation.{state}", data | ({"previous": previous} if previous else {})


def place(which: int, attempt: int) -> dict[str, Any]:
    return {
        "id": f"{attempt}{which}",
        "task": f"t-{which}",
        "node": "ab"[which],
        "address": f"10.0.{which}.2",
        "port": 1,
    }


def plan(attempt: int = 1, plan_id: str = "p1", bandwidth: int = 50) -> tuple[str, dict[str, Any]]:
    flow = {"number": attempt, "src": "t-0", "dst": "t-1", "min": 1, "max": 99, "path": ["a", "b"]}
    flow["bandwidth"] = bandwidth
    return "plan.committed", {
        "plan": plan_id,
        "job": "j",
        "attempt": attempt,
        "allocations": [place(0, attempt), place(1, attempt)],
        "flows": [flow],
    }


def planned(attempt: int = 1) -> list[tuple[str, dict[str, Any]]]:
    return [
        plan(attempt, f"p{attempt}"),
        job("planned", "queued", attempt),
        *(allocation(i, "pending", None, attempt=attempt) for i in (0, 1)),
        job("preparing", "planned", attempt),
        job("starting", "preparing", attempt),
        *(allocation(i, "running", "pending", attempt=attempt) for i in (0, 1)),
        job("running", "starting", attempt),
    ]


def done(attempt: int = 1) -> list[tuple[str, dict[str, Any]]]:
    return [
        *(allocation(i, "succeeded", "running", attempt=attempt) for i in (0, 1)),
        job("succeeded", "running", attempt),
    ]


START = [*(node(name, change) for name in "ab" for change in ("joined", "ready")), job("queued", None)]
LOST = [
    allocation(0, "lost", "running"),
    job("rescheduling", "running"),
    allocation(1, "stopping", "running"),
    allocation(1, "stopped", "stopping"),
    job("queued", "rescheduling", 2),
]
WHOLE = [*START, *planned(), *done()]


def found(facts: list[tuple[str, dict[str, Any]]], ground: Ground = GROUND) -> str:
    return "\n".join(audit(numbered(facts), ground))


def test_a_right_log_has_nothing_wrong() -> None:
    assert found(WHOLE) == ""
    assert found([*START, *planned(), *LOST, *planned(2), *done(2)]) == ""


def test_a_gang_that_restarts_in_place() -> None:
    again = [allocation(i, "pending", "running", 2) for i in (0, 1)]
    running = [allocation(i, "running", "pending", 2) for i in (0, 1)]
    ends = [allocation(i, "succeeded", "running", 2) for i in (0, 1)]
    story = [*again, job("starting", "running"), *running, job("running", "starting"), *ends]
    assert found([*START, *planned(), *story, job("succeeded", "running")]) == ""


def test_an_unfinished_log_is_right_only_if_it_need_not_be_finished() -> None:
    facts = [*START, *planned()]
    assert audit(numbered(facts), GROUND, finished=False) == []
    assert "job j ends running" in found(facts)
    assert "still holds 1 flows" in found(facts)
    assert "allocation 10 (t-0) ends running" in found(facts)


@pytest.mark.parametrize("at", range(1, len(WHOLE) - 1))
def test_no_event_can_be_missing(at: int) -> None:
    assert "gap" in "\n".join(audit([e for e in numbered(WHOLE) if e["sequence"] != at], GROUND))


@pytest.mark.parametrize("at", range(len(START) - 1, len(WHOLE)))
def test_no_step_can_be_left_out_or_taken_twice(at: int) -> None:
    assert found([*WHOLE[:at], *WHOLE[at + 1 :]]) != ""
    assert found([*WHOLE[:at], WHOLE[at], *copy.deepcopy(WHOLE[at:])]) != ""


def test_what_is_overbooked_is_found() -> None:
    small = Ground(links={("a", "b"): 52}, tasks=GROUND.tasks)
    assert "link a -> b: 50 of 52 is overbooked" in found(WHOLE, small)
    shared = Ground(links=GROUND.links, media={"air": 52}, medium_of={("a", "b"): "air"}, tasks=GROUND.tasks)
    assert "medium air: 50 of 52 is overbooked" in found(WHOLE, shared)
    wide = replace(shared, media={"air": 55})
    assert found(WHOLE, wide) == ""
    assert "medium air: 50 of 55 is overbooked" in found(WHOLE, replace(wide, tunnelled={"air"}))
    big = Ground(links=GROUND.links, tasks={"j": {"t-0": (1001, 10, 0), "t-1": (600, 10, 0)}})
    assert "node a has cpu 1000, 1001 is held: overbooked" in found(WHOLE, big)


def test_what_a_lost_worker_holds_is_not_given_away_before_it_is_sure() -> None:
    early = [job("rescheduling", "running"), job("queued", "rescheduling", 2), *planned(2)]
    text = found([*START, *planned(), *early])
    assert "queues again while something of it is live" in text
    assert "planned while something of it is live" in text
    assert "10.0.0.2:1, which is in use" in text
    assert "node a has cpu 1000, 1200 is held" in text


def test_a_plan_that_is_not_the_jobs_is_found() -> None:
    other = Ground(links={}, tasks={"j": {"t-0": (1, 1, 0), "t-9": (1, 1, 0)}})
    text = found(WHOLE, other)
    assert "asks for ['t-0', 't-9'], the plan has ['t-0', 't-1']" in text
    assert "which is no link" in text
    assert "outside of 1 to 99" in found([*START, plan(bandwidth=100)])


def test_work_for_a_silent_or_cordoned_node_is_found() -> None:
    assert "node b gets work while unreachable" in found([*START, node("b", "unreachable"), *planned()])
    assert "cordoned True" in found([*START, node("b", "cordoned"), *planned()])
    assert found([*START, node("b", "cordoned"), node("b", "uncordoned"), *planned(), *done()]) == ""
