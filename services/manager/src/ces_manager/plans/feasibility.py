"""Feasibility: whether a plan, or a revision of plans, fits the residual capacity. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Self

from ces_common.jobfile import Flow, Task
from ces_common.messages.cards import Card, Held
from ces_common.messages.confinement import Confinement, keeps_secrets, why_no_secrets
from ces_common.messages.plans import FlowPlan
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_manager.plans.card_checks import wrong_cards

Hop = tuple[str, str]  # the two ends of a link


class Obstacle(StrEnum):
    """What stands in a plan's way, as it is counted."""

    MALFORMED = "malformed"  # it is not what its job asks for
    OUTDATED = "outdated"  # its job has gone on meanwhile
    NODE = "node"  # is not there, takes no work, or is not what a task asks for
    NODE_FULL = "node-full"
    FLOW = "flow"  # its path, or its rate
    DATA = "data"
    CARD = "card"  # is not there, is another's, or is not what a task asks for
    LINK_FULL = "link-full"
    ADDRESSES = "addresses"
    DEADLINE = "deadline"  # of a request class


class Misfit(str):
    """Why a plan cannot be committed: a sentence, and what it is counted as."""

    __slots__ = ("obstacle",)
    obstacle: Obstacle

    def __new__(cls, obstacle: Obstacle, sentence: str) -> Self:
        made = super().__new__(cls, sentence)
        made.obstacle = obstacle
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[Obstacle, str]]:
        """For copies, and for other processes."""
        return type(self), (self.obstacle, str(self))


@dataclass(frozen=True, slots=True)
class ResidualNode:
    """A node and its residual capacity: ``cpu`` in millicores, ``memory`` in bytes. ``cards``: those that it has, by
    id; ``taken``: what other jobs hold of some."""

    state: str
    cordoned: bool
    reclaimed: bool
    arch: str
    labels: Mapping[str, str]
    cpu: int
    memory: int
    gpu: int
    datasets: Collection[str] = ()  # that it offers
    confinement: Confinement | None = None
    cards: Mapping[str, Card] = field(default_factory=dict)
    taken: Mapping[str, Held] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)  # of one thread, by class of work


@dataclass(frozen=True, slots=True)
class ResidualLink:
    """A link and its residual reservable ``bandwidth``, in bit/s. ``delay``: one way, in microseconds."""

    bandwidth: int
    medium: str | None = None
    up: bool = True
    delay: int = 0


@dataclass(frozen=True, slots=True)
class Residual:
    """Residual capacity of everything that a plan touches; what is missing here does not exist."""

    nodes: Mapping[str, ResidualNode]
    links: Mapping[Hop, ResidualLink] = field(default_factory=dict)
    media: Mapping[str, int] = field(default_factory=dict)  # bit/s left


def misfit(
    tasks: Sequence[Task],
    flows: Sequence[Flow],
    assignments: Mapping[str, str],
    given: Sequence[FlowPlan],
    residual: Residual,
    *,
    cards: Mapping[str, Sequence[str]] = MappingProxyType({}),
    asking: Sequence[Task] | None = None,
) -> Misfit | None:
    """The first reason why a plan cannot be committed; None where it can. ``cards``: the ids that the plan gives to
    each task. ``asking``: what the tasks still ask of their nodes, where they already hold part of what they need."""
    if set(assignments) != {task.name for task in tasks}:
        return Misfit(Obstacle.MALFORMED, "the plan does not place exactly the job's tasks")
    asked = {(flow.src, flow.dst): flow for flow in flows}
    if len(given) != len(asked) or {(flow.src, flow.dst) for flow in given} != set(asked):
        return Misfit(Obstacle.MALFORMED, "the plan does not give exactly the job's flows")
    sources = {flow.src: node for flow in flows if (node := flow.data_node) is not None}
    borders = {end: str(flow.border) for flow in flows if (end := flow.far_end(assignments)) is not None}
    places = {**assignments, **sources, **borders}
    needs = tasks if asking is None else asking
    problems: tuple[tuple[Obstacle, Iterator[str]], ...] = (
        (Obstacle.NODE, _unfit_nodes(needs, assignments, residual)),
        (Obstacle.NODE_FULL, _full_nodes(needs, assignments, residual)),
        (Obstacle.CARD, _strangers(needs, cards)),
        (
            Obstacle.CARD,
            (
                why
                for name, on in _by_node(needs, assignments).items()
                for why in wrong_cards(name, on, cards, residual.nodes[name])
            ),
        ),
        (Obstacle.FLOW, (why for flow in given for why in _flow(flow, asked[flow.src, flow.dst], places, residual))),
        (Obstacle.DATA, (why for flow in flows for why in _data(flow, residual))),
        (Obstacle.LINK_FULL, _links(given, residual)),
    )
    return next((Misfit(obstacle, why) for obstacle, reasons in problems for why in reasons), None)


def move_misfit(
    task: Task,
    node: str,
    flows: Sequence[Flow],
    given: Sequence[FlowPlan],
    places: Mapping[str, str],
    residual: Residual,
) -> Misfit | None:
    """The first reason why a task cannot have another node beside what its job holds; None where it can. ``flows``:
    those of the task; ``places``: where their other ends are."""
    asked = {(flow.src, flow.dst): flow for flow in flows}
    if len(given) != len(asked) or {(flow.src, flow.dst) for flow in given} != set(asked):
        return Misfit(Obstacle.MALFORMED, f"the move does not give exactly the flows of {task.name}")
    there, ends = {task.name: node}, {**places, task.name: node}
    problems: tuple[tuple[Obstacle, Iterator[str]], ...] = (
        (Obstacle.NODE, _unfit_nodes([task], there, residual)),
        (Obstacle.NODE_FULL, _full_nodes([task], there, residual)),
        (Obstacle.FLOW, (why for flow in given for why in _flow(flow, asked[flow.src, flow.dst], ends, residual))),
        (Obstacle.DATA, (why for flow in flows for why in _data(flow, residual))),
        (Obstacle.LINK_FULL, _links(given, residual)),
    )
    return next((Misfit(obstacle, why) for obstacle, reasons in problems for why in reasons), None)


@dataclass(frozen=True, slots=True)
class FlowChange:
    """A held flow, and what it shall have instead; ``low`` and ``high`` are what its job asks for, in bit/s."""

    held: FlowPlan
    given: FlowPlan
    low: int
    high: int


def revision_misfit(changes: Sequence[FlowChange], residual: Residual) -> str | None:
    """The first reason why flows cannot be changed like this; None where they can. ``residual`` is what is left beside
    what they hold. A flow may get less than its minimum only if it has less already, or if its path no longer carries
    it; with nothing it may stay on a path that is not there."""
    freed = _given_back(residual, [change.held for change in changes])
    moving = [change for change in changes if change.given.rate or change.given.path != change.held.path]
    for change in changes:
        held, given = change.held, change.given
        least = 0 if held.rate < change.low or _fails(held.path, residual) else change.low
        asked = Flow(src=held.src, dst=held.dst, min=least, max=change.high)
        ends = {held.src: held.path[0], held.dst: held.path[-1]}
        for reason in _flow(given, asked, ends, freed if change in moving else None):
            return reason
    return next(_links([change.given for change in moving], freed), None)


def growth_misfit(more: Mapping[str, int], residual: Residual) -> str | None:
    """The first reason why workers cannot have ``more`` millicores (by node) where they are; None where they can."""
    for name, cpu in more.items():
        node = residual.nodes.get(name)
        if node is None:
            return f"node {name} does not exist"
        for reason in _closed(name, node):
            return reason
        if cpu > node.cpu:
            return f"node {name} has {show_cpu(max(node.cpu, 0))} left, the change asks for {show_cpu(cpu)} more"
    return None


def _closed(name: str, node: ResidualNode) -> Iterator[str]:
    """Why a node takes nothing more, however much it has left."""
    if node.state != "ready":
        yield f"node {name} is {node.state}"
    if node.cordoned:
        yield f"node {name} is cordoned"
    if node.reclaimed:
        yield f"node {name} is reclaimed by its owner"


def _fails(path: Sequence[str], residual: Residual) -> bool:
    """Whether a link of the path is not there, is down, or has more on it than it carries."""
    links = [residual.links.get(hop) for hop in pairwise(path)]
    return any(
        link is None or not link.up or link.bandwidth < 0 or residual.media.get(link.medium or "", 0) < 0
        for link in links
    )


def _given_back(residual: Residual, flows: Sequence[FlowPlan]) -> Residual:
    links, media = dict(residual.links), dict(residual.media)
    for flow in flows:
        for hop in pairwise(flow.path):
            link = links.get(hop)
            if link is not None:
                links[hop] = replace(link, bandwidth=link.bandwidth + flow.rate)
                if link.medium is not None:
                    media[link.medium] += flow.rate
    return Residual(residual.nodes, links, media)


def _unfit_nodes(tasks: Sequence[Task], assignments: Mapping[str, str], residual: Residual) -> Iterator[str]:
    for task in tasks:
        name = assignments[task.name]
        node = residual.nodes.get(name)
        if node is None:
            yield f"node {name} does not exist"
            continue
        yield from _closed(name, node)
        if task.arch is not None and task.arch != node.arch:
            yield f"{task.name} asks for {task.arch}, node {name} is {node.arch or 'of unknown architecture'}"
        for key, value in task.labels.items():
            if node.labels.get(key) != value:
                yield f"{task.name} asks for label {key}={value}, which node {name} does not have"
        if task.secrets and not keeps_secrets(node.confinement):
            yield f"{task.name} asks for secrets, and node {name} {why_no_secrets(node.confinement)}"


def _full_nodes(tasks: Sequence[Task], assignments: Mapping[str, str], residual: Residual) -> Iterator[str]:
    """Of nodes that are there."""
    cpu, memory, gpu = Counter[str](), Counter[str](), Counter[str]()
    for task in tasks:
        name = assignments[task.name]
        cpu[name] += task.cpu
        memory[name] += task.memory
        gpu[name] += task.gpu
    for name in cpu:
        node = residual.nodes[name]
        if cpu[name] > node.cpu:
            yield f"node {name} has {show_cpu(max(node.cpu, 0))} left, the plan asks for {show_cpu(cpu[name])}"
        if memory[name] > node.memory:
            left = show_memory(max(node.memory, 0))
            yield f"node {name} has {left} of memory left, the plan asks for {show_memory(memory[name])}"
        if gpu[name] > node.gpu:
            yield f"node {name} has {max(node.gpu, 0)} GPUs left, the plan asks for {gpu[name]}"


def _strangers(tasks: Sequence[Task], cards: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name in cards.keys() - {task.name for task in tasks}:
        yield f"the plan gives cards to {name}, which is no task of the job"


def _by_node(tasks: Sequence[Task], assignments: Mapping[str, str]) -> dict[str, list[Task]]:
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(assignments[task.name], []).append(task)
    return found


def _data(flow: Flow, residual: Residual) -> Iterator[str]:
    """Whether the node that a flow comes from has what is to be read."""
    name = flow.data_node
    if name is None:
        return
    offered = residual.nodes[name].datasets if name in residual.nodes else ()
    lacking = [dataset for dataset in flow.datasets if dataset not in offered]
    if lacking or not offered:
        yield f"node {name} offers {f'no dataset {lacking[0]}' if lacking else 'no data'}, which {flow.dst} reads"


def _flow(flow: FlowPlan, asked: Flow, places: Mapping[str, str], residual: Residual | None) -> Iterator[str]:
    """``places``: the nodes of the flow's ends; ``residual`` is None for a flow that uses nothing."""
    name = f"flow {flow.src} -> {flow.dst}"
    if not asked.min <= flow.rate <= asked.max:
        yield (
            f"{name} gets {show_bandwidth(flow.rate)}, outside of "
            f"{show_bandwidth(asked.min)} to {show_bandwidth(asked.max)}"
        )
    path = flow.path
    if not path or path[0] != places[flow.src] or path[-1] != places[flow.dst]:
        yield f"the path of {name} does not lead from {places[flow.src]} to {places[flow.dst]}"
    if len(set(path)) != len(path):
        yield f"the path of {name} passes a node twice"
    if residual is None:
        return
    for hop in pairwise(path):
        if hop not in residual.links:
            yield f"{name} uses link {hop[0]} › {hop[1]}, which does not exist"
        elif not residual.links[hop].up:
            yield f"{name} uses link {hop[0]} › {hop[1]}, which is down"
    for node in path:
        if node not in residual.nodes:
            yield f"{name} passes node {node}, which does not exist"
        elif residual.nodes[node].state != "ready":
            yield f"{name} passes node {node}, which is {residual.nodes[node].state}"


def _links(given: Sequence[FlowPlan], residual: Residual) -> Iterator[str]:
    links, media = Counter[Hop](), Counter[str]()
    for flow in given:
        for hop in pairwise(flow.path):
            links[hop] += flow.rate
            medium = residual.links[hop].medium
            if medium is not None:
                media[medium] += flow.rate
    for hop, asked in links.items():
        left = residual.links[hop].bandwidth
        if asked > left:
            yield (
                f"link {hop[0]} › {hop[1]} has {show_bandwidth(max(left, 0))} left, "
                f"the plan asks for {show_bandwidth(asked)}"
            )
    for medium, asked in media.items():
        left = residual.media[medium]
        if asked > left:
            yield (
                f"medium {medium} has {show_bandwidth(max(left, 0))} left, the plan asks for {show_bandwidth(asked)}"
            )
