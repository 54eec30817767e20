"""The instance format of ``ces solve``: JSON objects to problems and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ces_core.model.errors import ProblemError
from ces_core.model.goals import UNITS, Chain, Goals, Held, ObjectiveWeights, Units
from ces_core.model.instance_format import ChainPart, InstanceFile, JobPart, LinkPart, NodePart, TaskPart
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import RESOURCES, Basis, Cluster, PathMetric, Problem
from ces_core.model.profiles import LinkProfile, NodeProfile, Position, TaskProfile, Work

NODE_PROFILE = frozenset(("speed", "idle_w", "peak_w", "power_w", "sleeping", "reliability", "position", "coverage_m"))
LINK_PROFILE = frozenset(("delay_ms", "nj_per_bit", "reliability"))
TASK_PROFILE = frozenset(("work", "rate", "longest_ms", "group", "state"))
GOALS = frozenset(("chains", "least_reliability", "objective", "held"))
PLAIN = {
    "extra_forbidden": "unknown field",
    "missing": "is missing",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text",
    "list_type": "must be a list",
    "model_type": "must hold fields with values",
    "model_attributes_type": "must hold fields with values",
}
"""What is wrong with a field, by pydantic's name for it, without its words for programmers."""
BLANK = {Work: Work(0.0), Chain: Chain(""), Held: Held("", "")}
"""What parts are compared with when they are written: what is alike is left out."""


def read_instance(
    data: Mapping[str, Any],
    *,
    basis: Basis = "system",
    paths: int | None = None,
    path_metric: PathMetric = "hops",
) -> Problem:
    """The problem that an instance describes, with hop-shortest paths or the ``paths`` simple ones that are the
    shortest by ``path_metric``.

    Raises ProblemError, naming the field.
    """
    try:
        instance = InstanceFile.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = PLAIN.get(first["type"], first["msg"])
        raise ProblemError(_dotted(first["loc"]), what) from error
    job = instance.job
    return Problem.make(
        Cluster.make(map(_node, instance.nodes), map(_link, instance.links), instance.media),
        map(_task, job.tasks),
        (Flow(**(vars(flow) | {"sources": _tuple(flow.sources)})) for flow in job.flows),
        name=job.name,
        weights=instance.weights,
        basis=basis,
        paths=paths,
        path_metric=path_metric,
        goals=_goals(job),
        units=UNITS if job.units is None else Units(**vars(job.units)),
    )


def write_instance(problem: Problem) -> dict[str, Any]:
    """The instance that describes a problem. What is left at its default of profiles and goals is left out."""
    cluster, topology = problem.cluster, problem.cluster.topology
    profile = cluster.profile
    nodes = [
        {"name": name}
        | {key: float(cluster.node_capacity[r, n]) for r, key in enumerate(RESOURCES)}
        | {f"{key}_used": float(cluster.node_used[r, n]) for r, key in enumerate(RESOURCES)}
        | ({} if profile is None else _said(profile.nodes[n], NodeProfile()))
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
        | ({} if profile is None else _said(profile.links[i], LinkProfile()))
        for i in range(len(topology.link_src))
    ]
    tasks = [
        {"name": task.name}
        | {key: float(getattr(task, key)) for key in RESOURCES}
        | {"allowed": None if task.allowed is None else list(task.allowed)}
        | ({} if task.profile is None else _said(task.profile, TaskProfile()))
        for task in problem.tasks
    ]
    flows = [
        {"src": flow.src, "dst": flow.dst, "min": float(flow.min), "max": float(flow.max)}
        | ({"message": float(flow.message)} if flow.message else {})
        | ({} if flow.sources is None else {"sources": list(flow.sources)})
        for flow in problem.flows
    ]
    goals = {} if problem.goals is None else _said(problem.goals, Goals())
    if "weights" in goals:
        goals["objective"] = goals.pop("weights")
    units = {} if problem.units == UNITS else {"units": dict(vars(problem.units))}
    return {
        "nodes": nodes,
        "links": links,
        "media": dict(zip(topology.media, cluster.medium_capacity.tolist(), strict=True)),
        "job": {"name": problem.name, "tasks": tasks, "flows": flows} | goals | units,
        "weights": list(problem.weights),
    }


def _node(part: NodePart) -> Node:
    profile = None
    if not NODE_PROFILE.isdisjoint(part.model_fields_set):
        given = {name: getattr(part, name) for name in NODE_PROFILE} | {"power_w": _tuple(part.power_w)}
        place = None if part.position is None else Position(part.position.lat, part.position.lon)
        profile = NodeProfile(**given | {"position": place})
    used = part.cpu_used, part.memory_used, part.gpu_used
    return Node(part.name, part.cpu, part.memory, part.gpu, *used, profile=profile)


def _link(part: LinkPart) -> Link:
    profile = None
    if not LINK_PROFILE.isdisjoint(part.model_fields_set):
        profile = LinkProfile(part.delay_ms, part.nj_per_bit, part.reliability)
    return Link(part.src, part.dst, part.bandwidth, part.bandwidth_used, part.medium, profile)


def _task(part: TaskPart) -> Task:
    profile = None
    if not TASK_PROFILE.isdisjoint(part.model_fields_set):
        work = None if part.work is None else Work(**vars(part.work))
        profile = TaskProfile(work, part.rate, part.longest_ms, part.group, part.state)
    return Task(part.name, part.cpu, part.memory, part.gpu, _tuple(part.allowed), profile)


def _goals(job: JobPart) -> Goals | None:
    if GOALS.isdisjoint(job.model_fields_set):
        return None
    return Goals(
        chains=tuple(_chain(f"job.chains[{i}]", chain) for i, chain in enumerate(job.chains)),
        least_reliability=job.least_reliability,
        weights=ObjectiveWeights() if job.objective is None else ObjectiveWeights(**vars(job.objective)),
        held=tuple(Held(**vars(held)) for held in job.held),
    )


def _chain(where: str, part: ChainPart) -> Chain:
    flows = []
    for j, ends in enumerate(part.flows):
        if len(ends) != 2:
            raise ProblemError(f"{where}.flows[{j}]", "must be the two ends of a flow, such as ['t0', 't1']")
        flows.append((ends[0], ends[1]))
    return Chain(part.name, tuple(part.tasks), tuple(flows), part.fixed_ms, part.deadline_ms, part.hard)


def _tuple(values: list[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _said(value: Any, default: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from its default, as JSON has them."""
    return {
        "class" if name == "work_class" else name: _json(given)
        for name, given in vars(value).items()
        if given != getattr(default, name)
    }


def _json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_json(each) for each in value]
    if isinstance(value, Mapping):
        return dict(value)
    if type(value) in BLANK:
        return _said(value, BLANK[type(value)])
    return dict(vars(value)) if isinstance(value, Position | ObjectiveWeights) else value


def _dotted(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "instance"
