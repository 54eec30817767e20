"""The instance format of ``ces solve``: JSON objects to problems and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ces_core.model.errors import ProblemError
from ces_core.model.problem import EQUAL_WEIGHTS, RESOURCES, Basis, Cluster, Flow, Link, Node, Problem, Task

_Number = Annotated[float, Field(ge=-1e24, le=1e24)]  # sums and products of many are still numbers


class _Part(BaseModel):
    # Unknown fields are refused: a misspelt "cpu_used" would otherwise pass as zero.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Node(_Part):
    name: str
    cpu: _Number = 0.0
    memory: _Number = 0.0
    gpu: _Number = 0.0
    cpu_used: _Number = 0.0
    memory_used: _Number = 0.0
    gpu_used: _Number = 0.0


class _Link(_Part):
    src: str
    dst: str
    bandwidth: _Number
    bandwidth_used: _Number = 0.0
    medium: str | None = None


class _Task(_Part):
    name: str
    cpu: _Number = 0.0
    memory: _Number = 0.0
    gpu: _Number = 0.0
    allowed: list[str] | None = None


class _Flow(_Part):
    src: str
    dst: str
    min: _Number = 0.0
    max: _Number


class _Job(_Part):
    name: str = "job"
    tasks: list[_Task]
    flows: list[_Flow] = Field(default_factory=list)


class _Instance(BaseModel):
    # At the top, other keys are left to whoever wrote the file (seed, regime, comments).
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)

    nodes: list[_Node]
    links: list[_Link] = Field(default_factory=list)
    media: dict[str, _Number] = Field(default_factory=dict)
    job: _Job
    weights: list[_Number] = Field(default_factory=lambda: list(EQUAL_WEIGHTS))


def read_instance(data: Mapping[str, Any], *, basis: Basis = "system", paths: int | None = None) -> Problem:
    """The problem that an instance describes, with hop-shortest paths or the ``paths`` shortest simple ones.

    Raises ProblemError, naming the field.
    """
    try:
        instance = _Instance.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = "unknown field" if first["type"] == "extra_forbidden" else first["msg"]
        raise ProblemError(_dotted(first["loc"]), what) from error
    cluster = Cluster.make(
        (Node(**vars(node)) for node in instance.nodes),
        (Link(**vars(link)) for link in instance.links),
        instance.media,
    )
    tasks = (
        Task(**(vars(task) | {"allowed": None if task.allowed is None else tuple(task.allowed)}))
        for task in instance.job.tasks
    )
    flows = (Flow(**vars(flow)) for flow in instance.job.flows)
    return Problem.make(
        cluster, tasks, flows, name=instance.job.name, weights=instance.weights, basis=basis, paths=paths
    )


def write_instance(problem: Problem) -> dict[str, Any]:
    """The instance that describes a problem."""
    cluster, topology = problem.cluster, problem.cluster.topology
    nodes = [
        {"name": name}
        | {key: float(cluster.node_capacity[r, n]) for r, key in enumerate(RESOURCES)}
        | {f"{key}_used": float(cluster.node_used[r, n]) for r, key in enumerate(RESOURCES)}
        for n, name in enumerate(topology.nodes)
    ]
    links = [
        {
            "src": topology.nodes[topology.link_src[i]],
            "dst": topology.nodes[topology.link_dst[i]],
            "bandwidth": float(cluster.link_capacity[i]),
            "bandwidth_used": float(cluster.link_used[i]),
            "medium": topology.media[topology.link_medium[i]] if topology.link_medium[i] >= 0 else None,
        }
        for i in range(len(topology.link_src))
    ]
    tasks = [
        {"name": task.name}
        | {key: float(getattr(task, key)) for key in RESOURCES}
        | {"allowed": None if task.allowed is None else list(task.allowed)}
        for task in problem.tasks
    ]
    flows = [
        {"src": flow.src, "dst": flow.dst, "min": float(flow.min), "max": float(flow.max)} for flow in problem.flows
    ]
    return {
        "nodes": nodes,
        "links": links,
        "media": dict(zip(topology.media, cluster.medium_capacity.tolist(), strict=True)),
        "job": {"name": problem.name, "tasks": tasks, "flows": flows},
        "weights": list(problem.weights),
    }


def _dotted(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "instance"
