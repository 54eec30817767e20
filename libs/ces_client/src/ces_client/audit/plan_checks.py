"""What is wrong with a plan by itself: its tasks, and the flows between them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ces_client.audit.inventory import Hop, JobRequest
from ces_client.audit.lifecycle import Flow


def wrong_tasks(name: str, request: JobRequest | None, tasks: Sequence[str]) -> Iterator[str]:
    if request is not None and not request.lists(tasks):
        yield f"job {name} asks for {sorted(request.tasks)}, the plan has {sorted(tasks)}"


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
