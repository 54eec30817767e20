"""A waiting job as a problem of the scheduling core, and the core's answers in the words of the messages. Pure.

Millicores, bytes and bit/s stay as they are; the core takes any consistent units.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cache
from itertools import islice

from ces_common.jobfile import Flow, Task
from ces_common.messages.events import Lack, Reason, TooFewNodes
from ces_common.messages.plans import FlowPlan
from ces_common.messages.records import JobRecord
from ces_common.names import NODE_MARK
from ces_common.quantities import show_bandwidth, show_cpu, show_memory
from ces_common.states import JobState
from ces_core.model.goals import UNITS as PLAIN_UNITS
from ces_core.model.parts import Flow as CoreFlow
from ces_core.model.parts import Task as CoreTask
from ces_core.model.plan import Considered, Plan
from ces_core.model.problem import RESOURCES, Problem
from ces_core.model.reason import Reason as CoreReason
from ces_scheduler.application_goals import DELAY_PATHS, UNITS, goals_of, places_of, task_profiles
from ces_scheduler.offer import Barred, Offer

Refusals = dict[str, dict[str, str]]
"""Task -> node -> why not."""
Lacking = dict[str, dict[str, list[Lack]]]
"""Task -> node -> what it has too little of."""
BESIDE = " beside the job's other tasks"
"""Of a node that has enough for a task, but not for what the solver had placed there before as well."""


def asked_by(job: JobRecord) -> list[Task]:
    """The job's tasks with what they still ask for: a suspended job asks only for the CPU of tasks that have not
    ended."""
    if job.state is not JobState.SUSPENDED:
        return job.tasks
    over = {each.rank for each in job.allocations if each.over}
    return [_cpu_only(task, 0 if task.rank in over else task.cpu) for task in job.tasks]


def _cpu_only(task: Task, cpu: int) -> Task:
    return task.model_copy(update={"cpu": cpu, "memory": 0, "gpu": 0, "gpu_share": 0, "gpu_models": []})


def problem_of(job: JobRecord, offer: Offer, paths: int | None = None) -> Problem:
    """What the job asks of the offered cluster. ``paths``: flows may take any of this many shortest simple paths; None:
    any hop-shortest one. Those of an application may take the paths with the least delay, where links say theirs."""
    tasks = asked_by(job)
    places = {each.task: each.node for each in job.allocations} if job.state is JobState.SUSPENDED else {}
    first = first_places(job, offer)
    candidates = sorted(name for name, node in offer.nodes.items() if node.cpu) if barred(tasks, offer) else []

    access = places_of(job, offer.nodes)
    profiles, goals = task_profiles(job, tasks), goals_of(job)

    def allowed(task: Task) -> tuple[str, ...] | None:
        if task.name in places:  # a cordon and the like bar a node for new work only
            node = offer.nodes.get(places[task.name])
            return (node.name,) if node is not None and node.state == "ready" else ()
        row = offer.barred(task)
        if task.user is not None:
            own = access.get(task.user)
            return () if own is None or own in row else (own,)
        if first and task is tasks[0]:
            return tuple(node for node in first if node not in row)
        return tuple(node for node in candidates if node not in row) if row else None

    delays = goals is not None and any(link.delay for link in offer.topology.links)
    return Problem.make(
        offer.cluster,
        [
            CoreTask(task.name, task.cpu, task.memory, task.gpus, allowed(task), profiles.get(task.name))
            for task in tasks
        ],
        _core_flows(job),
        name=job.name,
        paths=(paths or DELAY_PATHS) if delays else paths,
        path_metric="delay" if delays else "hops",
        goals=goals,
        units=UNITS if goals is not None or profiles else PLAIN_UNITS,
    )


def _core_flows(job: JobRecord) -> list[CoreFlow]:
    """Flows that cross into another region end at the node that stands for its gateway; those of one task there are one
    flow to the core, which knows one of each pair. Their rates are given: both regions have promised them."""
    tasks = {task.name for task in job.tasks}
    found: dict[tuple[str, str], CoreFlow] = {}
    for flow in job.flows:
        ends = _core_ends(flow, tasks)
        known = found.get(ends)
        less, most = (flow.min, flow.max) if known is None else (known.min + flow.min, known.max + flow.max)
        found[ends] = CoreFlow(*ends, less, most, flow.message)
    return list(found.values())


def _core_ends(flow: Flow, tasks: Container[str]) -> tuple[str, str]:
    far = flow.far_end(tasks)
    src, dst = (f"{NODE_MARK}{flow.border}" if end == far else end for end in (flow.src, flow.dst))
    return src, dst


def first_places(job: JobRecord, offer: Offer) -> tuple[str, ...]:
    """Where the first task of a malleable job is to be; empty: anywhere. A job that runs keeps it where its checkpoints
    are. One that waits begins there if there is room for that task, else on a node with a copy, else anywhere."""
    if job.checkpoint_node is None:
        return ()
    if job.state is not JobState.QUEUED:
        return (job.checkpoint_node,) if job.checkpoint_node in offer.nodes else ()
    known = job.checkpoints
    last = known.former if known.restoring else job.checkpoint_node
    copies = dict.fromkeys(node for each in known.stored for node in each.nodes)
    for nodes in ([] if last is None else [last], copies):
        if found := tuple(node for node in nodes if _takes(offer, node, job.tasks[0])):
            return found
    return ()


def _takes(offer: Offer, name: str, task: Task) -> bool:
    """Whether the node takes new work, this task may run there, and there is room for it."""
    node, index = offer.nodes.get(name), offer.cluster.topology.node_index.get(name)
    if node is None or index is None or node.cordoned or node.state != "ready" or name in offer.barred(task):
        return False
    free = offer.cluster.node_capacity[:, index] - offer.cluster.node_used[:, index]
    return all(free[row] >= amount for row, amount in enumerate((task.cpu, task.memory, task.gpus)))


def barred(tasks: Sequence[Task], offer: Offer) -> dict[str, Barred]:
    """Task -> node -> why it may not run there."""
    return {task.name: row for task in tasks if (row := offer.barred(task))}


def flow_plans(plan: Plan, flows: Sequence[Flow]) -> list[FlowPlan]:
    """The plan's flows with rates in whole bit/s: rounded down, so never more than there is, but never below the
    minimum, which a floating-point number may miss by a hair."""
    given = {(flow.src, flow.dst): flow for flow in plan.flows}
    found = []
    for flow in flows:
        core = given[_core_ends(flow, plan.assignments)]
        rate = flow.min if flow.border is not None else max(int(core.bandwidth), flow.min)
        found.append(FlowPlan(src=flow.src, dst=flow.dst, rate=rate, path=list(core.path)))
    return found


def reason_of(reason: CoreReason) -> Reason:
    """The core's reason as a message, its numbers written with units."""
    where = reason.where or (" -> ".join(reason.flow) if reason.flow else reason.task)
    return Reason(
        code=reason.code,
        text=reason.text(quantity),
        resource=reason.resource,
        needed=reason.needed,
        available=reason.available,
        where=where,
        forever=reason.permanent,
        nodes=None if reason.nodes is None else TooFewNodes.model_validate(reason.nodes, from_attributes=True),
    )


def quantity(resource: str, value: float) -> str:
    """An amount in the service's units, for people."""
    shown = {"cpu": show_cpu, "memory": show_memory, "bandwidth": show_bandwidth}.get(resource)
    return shown(value) if shown else f"{value:g} {resource}".strip()


def explain_refusals(tasks: Sequence[Task], offer: Offer, considered: Considered) -> Refusals:
    """Task -> node -> why not: what bars the node for good, else what the solver found lacking there."""
    permanent = barred(tasks, offer)
    free, index = dict(zip(RESOURCES, offer.cluster.node_free.tolist(), strict=True)), offer.cluster.topology.node_index
    explained: Refusals = {}
    for task in tasks:
        asked = _asked(task)
        lacking = {
            node: why if why not in asked or asked[why] > free[why][index[node]] else f"{why}{BESIDE}"
            for node, why in considered.refused(task.name).items()
            if why != "not-allowed" and offer.nodes[node].cpu
        }
        row = lacking | dict(permanent.get(task.name, {}))
        if row:
            explained[task.name] = row
    return explained


def lacks(tasks: Sequence[Task], offer: Offer, refused: Refusals, most: int) -> Lacking:
    """Of nodes that a solver refused since they have too little free for a task alone: how much that is. Of the first
    ``most`` such nodes in all, as many for each task."""
    free, index = dict(zip(RESOURCES, offer.cluster.node_free.tolist(), strict=True)), offer.cluster.topology.node_index
    each, found = most // max(1, len(refused)), {}
    lack = cache(lambda resource, needed, available: Lack(resource=resource, needed=needed, available=available))
    for task in tasks:
        asked = _asked(task)
        short = (node for node, why in refused.get(task.name, {}).items() if why in asked)
        nodes = {
            node: [
                lack(resource, needed, free[resource][index[node]])
                for resource, needed in asked.items()
                if needed > free[resource][index[node]]
            ]
            for node in islice(short, each)
        }
        if nodes:
            found[task.name] = nodes
    return found


def _asked(task: Task) -> dict[str, int]:
    """What of a node's amounts shows whether it has enough. How much GPU is free in all does not where a share is asked
    for, which has to be on one card, or a model."""
    asked = dict(zip(RESOURCES, (task.cpu, task.memory, task.gpu), strict=True))
    return {name: asked[name] for name in asked if name != "gpu" or not (task.gpu_share or task.gpu_models)}
