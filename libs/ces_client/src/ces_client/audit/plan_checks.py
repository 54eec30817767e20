"""What is wrong with a plan by itself, or with a change of it: its tasks, and the flows between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ces_client.audit.inventory import Hop, JobRequest
from ces_client.audit.lifecycle import Flow
from ces_client.audit.usage import Usage


def wrong_tasks(name: str, request: JobRequest | None, tasks: Sequence[str]) -> Iterator[str]:
    if request is None or request.lists(tasks):
        return
    asked = f"{sorted(request.tasks)}"
    if request.elastic is not None:
        asked += f", of {request.elastic} any of {list(request.sizes)}"
    yield f"job {name} asks for {asked}, the plan has {sorted(tasks)}"


def wrong_nodes(
    names: Iterable[str], nodes: Mapping[str, Mapping[str, Any]], late: bool, usage: Usage
) -> Iterator[str]:
    """Which nodes get work and must not. ``late``: the log lacks its first events, so a node may have joined before."""
    for name in dict.fromkeys(names):
        node = nodes.get(name)
        if node is not None and (node["state"] != "ready" or node["cordoned"] or node["reclaimed"]):
            told = f"{node['state']}, cordoned {node['cordoned']}, reclaimed {node['reclaimed']}"
            yield f"node {name} gets work while {told}"
        if node is None and not (late and usage.knows_node(name)):
            yield f"node {name} has never joined"


def wrong_size(
    name: str, request: JobRequest | None, size: int, before: int, now: Mapping[str, str], then: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with a resize. ``now`` and ``then``: task -> node at the present size and the new one, the first
    task first."""
    if size == before:
        yield f"job {name} is resized from {before} to the same"
    if request is not None and request.elastic is None:
        yield f"job {name} is resized, which is not malleable"
    for said, tasks in (before, now), (size, then):
        if request is not None and request.elastic is not None and said != request.size_of(tasks):
            yield f"job {name} is said to have size {said} with the tasks {sorted(tasks)}"
    first = next(iter(now), None)
    if first is not None and then.get(first) != now[first]:
        yield f"{first} of job {name} goes from {now[first]} to {then.get(first)}, away from its checkpoints"


def wrong_flows(
    places: Mapping[str, str],
    flows: Sequence[Flow],
    numbers: Mapping[int, int],
    links: Mapping[Hop, int] | None,
) -> Iterator[str]:
    """``places``: task -> node; ``numbers``: how often each is in use; ``links``: None for unknown ones."""
    fresh: set[int] = set()
    for flow in flows:
        who = f"flow {flow['src']} -> {flow['dst']}"
        if flow["number"] in fresh or numbers[flow["number"]]:
            yield f"{who} gets number {flow['number']}, which is in use"
        fresh.add(flow["number"])
        if not flow["min"] <= flow["rate"] <= flow["max"]:
            yield f"{who} gets {flow['rate']}, outside of {flow['min']} to {flow['max']}"
        path, src = flow["path"], flow["src"]
        first = src[1:] if src.startswith("@") else places.get(src)  # a node's own data, or what a task sends
        if not path or (path[0], path[-1]) != (first, places.get(flow["dst"])):
            yield f"{who} goes by {path}, its tasks are elsewhere"
        for hop in pairwise(path):
            if links is not None and hop not in links:
                yield f"{who} uses {hop[0]} -> {hop[1]}, which is no link"


def wrong_revision(
    name: str, held: Mapping[int, Flow], flows: Sequence[Flow], short: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """``held``: what the job's flows are before that, by number; ``short``: those that may get less than their
    minimum."""
    may_lack = {(flow["src"], flow["dst"]) for flow in short}
    for flow in flows:
        who, before = f"flow {flow['src']} -> {flow['dst']}", held.get(flow["number"])
        if before is None or not _same_ends(before, flow):
            yield f"{who} of {name} is revised, which does not hold number {flow['number']}"
            continue
        if (before["path"][0], before["path"][-1]) != (flow["path"][0], flow["path"][-1]):
            yield f"{who} goes by {flow['path']} now, its tasks are elsewhere"
        least = 0 if (flow["src"], flow["dst"]) in may_lack else flow["min"]
        if not least <= flow["rate"] <= flow["max"]:
            yield f"{who} gets {flow['rate']}, outside of {least} to {flow['max']}"


def revised(held: Mapping[int, Flow], flows: Sequence[Flow]) -> dict[int, Flow]:
    """A job's flows after a revision."""
    known = {flow["number"]: flow for flow in flows if flow["number"] in held}
    return {**held, **{number: flow for number, flow in known.items() if _same_ends(held[number], flow)}}


def _same_ends(one: Flow, other: Flow) -> bool:
    return (one["src"], one["dst"]) == (other["src"], other["dst"])
