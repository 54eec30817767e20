"""The job that the parts of a graph become: a task for each part, a flow for the traffic from one to another."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Protocol

from ces_common.graphfile import ApplicationGraph
from ces_common.jobfile import JobFile
from ces_common.resources import Resources

LONGEST_LIST = 32768  # characters of CES_VERTICES; a longer one is left out
NEAR = "near"


class Part(Protocol):
    """What one part asks for, in millicores, bytes and cards. ``near``: it is the one near the user."""

    @property
    def vertices(self) -> Sequence[str]: ...
    @property
    def cpu(self) -> float: ...
    @property
    def memory(self) -> float: ...
    @property
    def gpu(self) -> int: ...
    @property
    def arch(self) -> str | None: ...
    @property
    def near(self) -> bool: ...


class Traffic(Protocol):
    """From one part to another, by index: least and most, in bit/s."""

    @property
    def src(self) -> int: ...
    @property
    def dst(self) -> int: ...
    @property
    def min(self) -> float: ...
    @property
    def max(self) -> float: ...


def names_of(parts: Sequence[Part]) -> list[str]:
    """The groups of tasks that parts become."""
    return [NEAR if part.near else f"part{index + 1}" for index, part in enumerate(parts)]


def job_of(graph: ApplicationGraph, parts: Sequence[Part], flows: Sequence[Traffic]) -> JobFile:
    """The job, whose tasks are ``part1-0``, ``part2-0`` and so on, and ``near-0``. A part asks for as much memory as
    any job does that says nothing, where its vertices ask for less. Raises pydantic's ValidationError."""
    assert graph.run is not None
    names = names_of(parts)
    least = min(Resources().memory, graph.capacity.memory or Resources().memory)
    tasks: list[dict[str, Any]] = []
    for name, part in zip(names, parts, strict=True):
        env = dict(graph.run.env)
        if len(listed := ",".join(part.vertices)) <= LONGEST_LIST:
            env["CES_VERTICES"] = listed
        task: dict[str, Any] = {"name": name, "env": env}
        task |= {"image": graph.run.image} if graph.run.image else {}
        task |= {"command": graph.run.command} if graph.run.command else {}
        cpu, memory = f"{max(1, ceil(part.cpu))}m", max(least, ceil(part.memory))
        task["resources"] = {"cpu": cpu, "memory": memory, "gpu": part.gpu}
        limits = ({"arch": part.arch} if part.arch else {}) | ({"labels": graph.near.labels} if part.near else {})
        tasks.append(task | ({"constraints": limits} if limits else {}))
    edges = [
        {
            "src": f"{names[flow.src]}-0",
            "dst": f"{names[flow.dst]}-0",
            "bandwidth": {"min": max(1, ceil(flow.min)), "max": max(1, ceil(flow.max))},
        }
        for flow in flows
    ]
    return JobFile.model_validate({"name": graph.name, "tasks": tasks, "flows": {"edges": edges}})
