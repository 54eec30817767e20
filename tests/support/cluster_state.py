"""States of a cluster for tests: nodes, wires and jobs in a few words."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ces_common.jobfile import Flow, Task
from ces_common.messages.records import (
    AllocationRecord,
    FlowRecord,
    JobRecord,
    LinkRecord,
    MediumRecord,
    NodeRecord,
    Snapshot,
    Topology,
)
from ces_common.state_view import StateView
from ces_common.states import JobState

MBIT = 10**6
GIB = 2**30
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def node(name: str, number: int = 0, **fields: Any) -> NodeRecord:
    """A node with 4 cores and 4 GiB; its workers' subnet is 10.77.<number>.0/24."""
    defaults = {"cpu": 4000, "memory": 4 * GIB, "arch": "amd64", "network": "tc", "subnet": f"10.77.{number}.0/24"}
    return NodeRecord.model_validate({"name": name, "host_address": f"192.0.2.{number}"} | defaults | fields)


def wire(one: str, other: str, bandwidth: int = 100 * MBIT, **fields: Any) -> list[LinkRecord]:
    """Two links, one each way."""
    ends = ((one, other), (other, one))
    return [LinkRecord.model_validate({"src": a, "dst": b, "bandwidth": bandwidth, **fields}) for a, b in ends]


def job(
    name: str,
    placement: Sequence[str] = (),
    flows: Iterable[tuple[int, int, int, Sequence[str]]] = (),
    *,
    tasks: int = 0,
    addresses: Sequence[str] = (),
    asked: Iterable[tuple[int, int, int, int]] = (),
    numbers: Iterable[int] | None = None,
    task: Mapping[str, Any] | None = None,
    allocation: Mapping[str, Any] | None = None,
    **fields: Any,
) -> JobRecord:
    """A job of which rank i runs on ``placement[i]`` (or, without one, of ``tasks`` tasks that wait).

    ``flows``: (source rank, destination rank, bandwidth, path) as reserved; ``asked``: (source rank, destination rank,
    min, max) of a job that waits.
    """
    ranks = range(len(placement) or tasks or 1)
    counting = iter(numbers) if numbers is not None else itertools.count(1)
    reserved = [
        FlowRecord(number=next(counting), src=f"w-{a}", dst=f"w-{b}", min=1, max=rate, rate=rate, path=list(path))
        for a, b, rate, path in flows
    ]
    desired = [Flow(src=f"w-{a}", dst=f"w-{b}", min=low, max=high) for a, b, low, high in asked]
    defaults: dict[str, Any] = {
        "id": name,
        "name": name,
        "priority": 50,
        "state": JobState.RUNNING if placement else JobState.QUEUED,
        "tasks": [
            Task.model_validate(
                {"name": f"w-{i}", "rank": i, "command": ["run"], "cpu": 500, "memory": GIB // 4} | dict(task or {})
            )
            for i in ranks
        ],
        "flows": desired or [Flow(src=flow.src, dst=flow.dst, min=flow.min, max=flow.max) for flow in reserved],
        "allocations": [
            AllocationRecord.model_validate(
                {
                    "id": f"{name}-w-{i}",
                    "task": f"w-{i}",
                    "rank": i,
                    "node": placement[i],
                    "address": addresses[i] if addresses else f"10.88.{sum(map(ord, name)) % 250}.{i + 2}",
                    "port": 29500,
                }
                | dict(allocation or {})
            )
            for i in ranks
            if placement
        ],
        "reserved": reserved,
        "submitted_at": NOW,
    }
    return JobRecord.model_validate(defaults | fields)


def snapshot(
    nodes: Iterable[NodeRecord] = (),
    links: Iterable[LinkRecord] = (),
    jobs: Iterable[JobRecord] = (),
    *,
    media: Iterable[MediumRecord] = (),
    version: int = 1,
    epoch: str = "e",
) -> Snapshot:
    """All that there is."""
    topology = Topology(version=version, links=list(links), media=list(media))
    return Snapshot(epoch=epoch, version=version, full=True, nodes=list(nodes), topology=topology, jobs=list(jobs))


def view_of(
    nodes: Iterable[NodeRecord] = (), links: Iterable[LinkRecord] = (), jobs: Iterable[JobRecord] = (), **fields: Any
) -> StateView:
    """A reader's view of all that there is."""
    view = StateView()
    view.merge(snapshot(nodes, links, jobs, **fields))
    return view
