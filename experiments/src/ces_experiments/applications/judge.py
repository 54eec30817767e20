"""What was measured of a class of requests, beside what was reckoned. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ces_common.messages.api import PlanView, TaskView
from ces_testbed.topology import Topology

FACTOR, SPARE_MS = 1.15, 2.0
"""A measured p95 is as reckoned up to so many times the model's time and so much more."""

Counts = Mapping[str, int]


def reckoned(plan: PlanView, topology: Topology) -> dict[str, Any]:
    """Of the plan's only class of requests: its time by the model in ms, and how it divides into wires, messages and
    work. An application without access has no other part."""
    (request,) = plan.considered["requests"]
    delays = {(link.src, link.dst): link.delay for link in topology.links}
    delays |= {(link.dst, link.src): link.delay for link in topology.links if link.both}
    wires = sum(delays[hop] for flow in plan.flows for hop in _hops(flow.path)) / 1000
    work = sum(step["ms"] for step in request["steps"] if " on " in step["what"])
    return {
        "time_ms": request["time_ms"],
        "deadline_ms": request["deadline_ms"],
        "hard": request["hard"],
        "wires_ms": wires,
        "work_ms": work,
        "messages_ms": request["time_ms"] - wires - work,
        "hops": sum(len(_hops(flow.path)) for flow in plan.flows),
    }


def _hops(path: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(path))


def told(task: TaskView) -> dict[str, Any] | None:
    """What the task has told last of its class of requests: percentiles, ``sent``, ``answers``, ``late``, ``lost``."""
    line = task.progress or {}
    requests = (line.get("result") or line.get("progress", line)).get("requests", {})
    found: dict[str, Any] | None = next(iter(requests.values()), None)
    return found


def as_reckoned(p95_ms: float, time_ms: float) -> bool:
    return p95_ms <= FACTOR * time_ms + SPARE_MS


def waiting(counts: Counts) -> int:
    """Requests that are on their way."""
    return counts["sent"] - counts["answers"] - counts["lost"]


def missed(before: Counts, after: Counts) -> dict[str, int]:
    """Requests that were sent between two reports, and how many missed their deadline: late, or never answered."""
    return {
        "sent": after["sent"] - before["sent"],
        "missed": after["late"] + after["lost"] - before["late"] - before["lost"],
    }
