"""What was measured of a class of requests, beside what was reckoned. Pure."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ces_common.messages.api import PlanView, TaskView
from ces_experiments.applications.waits import Span
from ces_testbed.topology import Topology

FACTOR, SPARE_MS = 1.15, 2.0
"""A measured p95 is as reckoned up to so many times the model's time and so much more."""

WAIT_MS = SPARE_MS
"""A request is undisturbed if its application's tasks, all together, waited for a core no longer than this while it was
on its way: so much a p95 may be above the model's time anyway."""

Counts = Mapping[str, int]
Answer = tuple[float, float]
"""When it came and what it took, in ms."""


def reckoned(plan: PlanView, file: Mapping[str, Any], topology: Topology) -> dict[str, Any]:
    """Of the only class of requests of an application without access: its time by the model in ms, and how it divides
    into wires, messages and work. ``flow_load``: the share of the time for which the busiest flow sends."""
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
        "flow_load": max(_loads(plan, file), default=0.0),
        "hops": sum(len(_hops(flow.path)) for flow in plan.flows),
    }


def _loads(plan: PlanView, file: Mapping[str, Any]) -> Iterator[float]:
    """Of each flow over links."""
    messages = {(edge["src"], edge["dst"]): edge["message"] for edge in file["flows"]["edges"]}
    for flow in plan.flows:
        if flow.rate and len(flow.path) > 1:
            yield file["requests"][0]["rate"] * messages[flow.src, flow.dst] * 8 / flow.rate


def _hops(path: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(path))


def told(task: TaskView) -> dict[str, Any] | None:
    """What the task has told last of its class of requests: ``sent``, ``answers``, ``late``, ``lost`` and more."""
    line = task.progress or {}
    requests = (line.get("result") or line.get("progress", line)).get("requests", {})
    found: dict[str, Any] | None = next(iter(requests.values()), None)
    return found


def as_reckoned(p95_ms: float, time_ms: float) -> bool:
    return p95_ms <= FACTOR * time_ms + SPARE_MS


def answers(lines: Iterable[str]) -> list[Answer]:
    """What a sender's log tells of each answer."""
    found: list[Answer] = []
    for line in lines:
        if line.startswith('{"answers"'):
            found += ((at, took) for told in json.loads(line)["answers"].values() for at, took in told)
    return found


def times(given: Sequence[Answer], spans: Sequence[Span]) -> dict[str, Any]:
    """Percentiles of the answers to requests sent and answered within the spans: of all, and of those that were
    undisturbed. ``core_wait_ms``: what the tasks waited for a core, for each answer."""
    within = _within(given, spans)
    return {
        "all": _percentiles(took for _, took in within),
        "undisturbed": _percentiles(took for _, took in undisturbed(given, spans)),
        "core_wait_ms": sum(waited for *_, waited in spans) / max(1, len(within)),
    }


def undisturbed(given: Iterable[Answer], spans: Sequence[Span]) -> list[Answer]:
    """Of the requests sent and answered within the spans, those while nobody waited for a core for long. They are told
    by the waiting alone, never by what they took."""
    begins, ends = [begun for begun, *_ in spans], [end for _, end, _ in spans]
    found = []
    for at, took in _within(given, spans):
        meanwhile = spans[bisect_right(ends, at - took) : bisect_left(begins, at)]
        if sum(waited for *_, waited in meanwhile) <= WAIT_MS:
            found.append((at, took))
    return found


def _within(given: Iterable[Answer], spans: Sequence[Span]) -> list[Answer]:
    return [each for each in given if spans and each[0] - each[1] >= spans[0][0] and each[0] <= spans[-1][1]]


def _percentiles(values: Iterable[float]) -> dict[str, Any]:
    ordered = sorted(values)
    if not ordered:
        return {"n": 0}
    shares = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99}
    return {"n": len(ordered)} | {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in shares.items()}


def waiting(counts: Counts) -> int:
    """Requests that are on their way."""
    return counts["sent"] - counts["answers"] - counts["lost"]


def missed(before: Counts, after: Counts) -> dict[str, int]:
    """Requests that were sent between two reports, and how many missed their deadline: late, or never answered."""
    return {
        "sent": after["sent"] - before["sent"],
        "missed": after["late"] + after["lost"] - before["late"] - before["lost"],
    }
