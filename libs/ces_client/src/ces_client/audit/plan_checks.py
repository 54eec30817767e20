"""What is wrong with a plan by itself, or with a change of it: its tasks, and the flows between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ces_client.audit.inventory import Hop, JobRequest
from ces_client.audit.lifecycle import Flow


def wrong_tasks(name: str, request: JobRequest | None, tasks: Sequence[str]) -> Iterator[str]:
    if request is None or request.lists(tasks):
        return
    asked = f"{sorted(request.tasks)}"
    if request.elastic is not None:
        asked += f", of {request.elastic} any of {list(request.sizes)}"
    yield f"job {name} asks for {asked}, the plan has {sorted(tasks)}"


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


def wrong_numbers(flows: Sequence[Flow], numbers: Mapping[int, int]) -> Iterator[str]:
    """``numbers``: how often each is in use."""
    fresh: set[int] = set()
    for flow in flows:
        if flow["number"] in fresh or numbers[flow["number"]]:
            yield f"{_who(flow)} gets number {flow['number']}, which is in use"
        fresh.add(flow["number"])


def wrong_rates(flows: Iterable[Flow], short: Iterable[Mapping[str, Any]] = ()) -> Iterator[str]:
    """``short``: those that may get less than their minimum."""
    may_lack = {(flow["src"], flow["dst"]) for flow in short}
    for flow in flows:
        least = 0 if (flow["src"], flow["dst"]) in may_lack else flow["min"]
        if not least <= flow["rate"] <= flow["max"]:
            yield f"{_who(flow)} gets {flow['rate']}, outside of {least} to {flow['max']}"


def wrong_paths(places: Mapping[str, str], flows: Iterable[Flow], links: Mapping[Hop, int] | None) -> Iterator[str]:
    """``places``: task -> node; ``links``: None for unknown ones."""
    for flow in flows:
        path = flow["path"]
        if not path or (path[0], path[-1]) != (_end(flow["src"], places, path[0]), _end(flow["dst"], places, path[-1])):
            yield f"{_who(flow)} goes by {path}, its tasks are elsewhere"
        for hop in pairwise(path):
            if links is not None and hop not in links:
                yield f"{_who(flow)} uses {hop[0]} -> {hop[1]}, which is no link"


def _end(name: str, places: Mapping[str, str], said: str) -> str | None:
    """The node where a flow must begin or end, which is ``said`` to be one: a task's, one that has data, or, for a task
    in another region, any that stands for a gateway there."""
    if name.startswith("@"):
        return name[1:]
    return said if name not in places and "--" in said else places.get(name)


def not_held(name: str, held: Mapping[int, Flow], flows: Iterable[Flow]) -> Iterator[str]:
    """Flows that are revised and that the job does not have. ``held``: its flows before that, by number."""
    mine = known(held, flows)
    for flow in flows:
        if flow["number"] not in mine:
            yield f"{_who(flow)} of {name} is revised, which does not hold number {flow['number']}"


def moved_ends(held: Mapping[int, Flow], flows: Iterable[Flow]) -> Iterator[str]:
    """Flows that a revision leads from or to other nodes than before."""
    for flow in flows:
        before = held[flow["number"]]["path"]
        if (before[0], before[-1]) != (flow["path"][0], flow["path"][-1]):
            yield f"{_who(flow)} goes by {flow['path']} now, its tasks are elsewhere"


def known(held: Mapping[int, Flow], flows: Iterable[Flow]) -> dict[int, Flow]:
    """The flows of a revision that the job has, by number."""
    befores = ((held.get(flow["number"]), flow) for flow in flows)
    return {
        flow["number"]: flow
        for before, flow in befores
        if before is not None and (before["src"], before["dst"]) == (flow["src"], flow["dst"])
    }


def _who(flow: Flow) -> str:
    return f"flow {flow['src']} -> {flow['dst']}"
