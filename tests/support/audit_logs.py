"""Event logs as the manager writes them, fact by fact, for tests of the auditor."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from ces_client.audit import Amounts, Event, Finding, Inventory, JobRequest, Verdict
from ces_client.audit_inputs import judge

Fact = tuple[str, dict[str, Any]]
NODE: Amounts = (1000, 100, 0)
LINK = 100


def asked(*amounts: Amounts, expected_s: float | None = None) -> JobRequest:
    """Of tasks t-0, t-1, ..."""
    return JobRequest({f"t-{i}": each for i, each in enumerate(amounts)}, expected_s)


INVENTORY = Inventory(links={("a", "b"): LINK}, jobs={"j": asked((600, 10, 0), (600, 10, 0))})


def numbered(facts: Sequence[Fact], first: int = 1) -> list[Event]:
    """One event a second."""
    return [
        {
            "sequence": i,
            "id": f"e{i}",
            "type": f"ces.v1.{kind}",
            "time": f"2026-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}+00:00",
            "data": copy.deepcopy(data),
        }
        for i, (kind, data) in enumerate(facts, start=first)
    ]


def audit(events: Sequence[Event], inventory: Inventory, *, finished: bool = True) -> Verdict:
    """The verdict on a whole log of a cluster that is idle at its end."""
    verdict = judge(events, inventory, finished=finished)
    assert all(verdict.checked[finding.kind] for finding in verdict.findings)
    return verdict


def findings(facts: Sequence[Fact], inventory: Inventory = INVENTORY, *, finished: bool = True) -> tuple[Finding, ...]:
    return audit(numbered(facts), inventory, finished=finished).findings


def found(facts: Sequence[Fact], inventory: Inventory = INVENTORY) -> str:
    return "\n".join(map(str, findings(facts, inventory)))


def node(name: str, change: str, amounts: Amounts = NODE) -> Fact:
    return "node.changed", {"node": name, "change": change, **dict(zip(("cpu", "memory", "gpu"), amounts, strict=True))}


def ready(*names: str) -> list[Fact]:
    return [node(name, change) for name in names for change in ("joined", "ready")]


def job(state: str, previous: str | None, attempt: int = 1, name: str = "j") -> Fact:
    data = {"job": name, "name": name, "attempt": attempt, "state": state}
    return f"job.{state}", data | ({"previous": previous} if previous else {})


def waiting(start_at: str, name: str = "j") -> Fact:
    """Room is kept for the job."""
    return "job.waiting", {"job": name, "name": name, "queue_status": {"reserved": True, "start_at": start_at}}


def _allocation_id(name: str, which: int, attempt: int) -> str:
    return f"{name}{attempt}{which}"


def allocation(
    which: int,
    state: str,
    previous: str | None,
    incarnation: int = 1,
    attempt: int = 1,
    name: str = "j",
    nodes: Sequence[str] = "ab",
) -> Fact:
    data = {
        "allocation": _allocation_id(name, which, attempt),
        "job": name,
        "task": f"t-{which}",
        "node": nodes[which],
        "incarnation": incarnation,
        "state": state,
    }
    return f"allocation.{state}", data | ({"previous": previous} if previous else {})


def plan(
    attempt: int = 1,
    plan_id: str | None = None,
    rate: int = 50,
    name: str = "j",
    nodes: Sequence[str] = "ab",
    number: int | None = None,
) -> Fact:
    """Both tasks placed, and a flow from the first to the second. ``number``: the flow's, and both addresses'."""
    number = attempt if number is None else number
    path = list(dict.fromkeys(nodes))
    flow = {"number": number, "src": "t-0", "dst": "t-1", "min": 1, "max": 99, "path": path, "rate": rate}
    places = [
        {
            "id": _allocation_id(name, i, attempt),
            "task": f"t-{i}",
            "node": each,
            "address": f"10.{number if name != 'j' else 0}.{i}.2",
            "port": 1,
        }
        for i, each in enumerate(nodes)
    ]
    committed = {"plan": plan_id or f"{name}p{attempt}", "job": name, "attempt": attempt}
    return "plan.committed", committed | {"allocations": places, "flows": [flow]}


def started(attempt: int = 1, *, name: str = "j", nodes: Sequence[str] = "ab", **how: Any) -> list[Fact]:
    """From the plan until it runs."""
    which: dict[str, Any] = {"attempt": attempt, "name": name}
    return [
        plan(nodes=nodes, **which, **how),
        job("planned", "queued", **which),
        *(allocation(i, "pending", None, nodes=nodes, **which) for i in (0, 1)),
        job("preparing", "planned", **which),
        job("starting", "preparing", **which),
        *(allocation(i, "running", "pending", nodes=nodes, **which) for i in (0, 1)),
        job("running", "starting", **which),
    ]


def done(attempt: int = 1, *, name: str = "j", nodes: Sequence[str] = "ab") -> list[Fact]:
    which: dict[str, Any] = {"attempt": attempt, "name": name}
    return [
        *(allocation(i, "succeeded", "running", nodes=nodes, **which) for i in (0, 1)),
        job("succeeded", "running", **which),
    ]


START = [*ready("a", "b"), job("queued", None)]
LOST = [
    allocation(0, "lost", "running"),
    job("rescheduling", "running"),
    allocation(1, "stopping", "running"),
    allocation(1, "stopped", "stopping"),
    job("queued", "rescheduling", 2),
]
WHOLE = [*START, *started(), *done()]
"""A job that runs to its end, with nothing wrong."""
