"""What an application wants beyond a place, in the core's words: work, chains, deadlines and the objective's weights.
Pure.

The core reckons times in ms; an application file's are in microseconds, its work in microseconds of the reference core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ces_common.access_nodes import Uncovered, access_node
from ces_common.application import access_ms, request_rates, routes_of
from ces_common.jobfile import Task
from ces_common.messages.events import Reason
from ces_common.messages.records import JobRecord, NodeRecord
from ces_common.messages.request_times import RequestTime
from ces_common.states import JobState
from ces_core.model.goals import Chain, Goals, ObjectiveWeights, Units
from ces_core.model.profiles import LinkProfile, NodeProfile, TaskProfile, Work
from ces_core.model.service import RequestTime as CoreTime

UNITS = Units(core=1000.0, mbit=1e6)
"""Millicores and bit/s."""
DELAY_PATHS = 4
"""Paths of least delay that the flows of an application may take where the scheduler was told no number."""


def places_of(job: JobRecord, nodes: Mapping[str, NodeRecord]) -> dict[str, str]:
    """User -> access node, of those users that have one now."""
    found = {}
    for user in job.users:
        try:
            found[user.name] = access_node(user.at, nodes.values())
        except Uncovered:
            continue
    return found


def lacking_access(job: JobRecord, nodes: Mapping[str, NodeRecord]) -> Reason | None:
    """Why requests of a user can enter nowhere; None where all can."""
    for user in job.users:
        try:
            access_node(user.at, nodes.values())
        except Uncovered as error:
            return Reason(code="no-access", text=f"user {user.name}: {error}", where=user.name, forever=True)
    return None


def task_profiles(job: JobRecord, tasks: Sequence[Task]) -> dict[str, TaskProfile]:
    """Of the tasks with work. ``tasks``: with what they ask for now."""
    rates = request_rates(routes_of(job.requests, tasks))
    return {
        task.name: TaskProfile(
            Work(task.work.per_request / 1000, task.work.work_class, task.work.threads),
            rates.get(task.name, 0.0),
            None if task.work.longest is None else task.work.longest / 1000,
        )
        for task in tasks
        if task.work is not None and task.cpu and not _partly_over(job)
    }


def goals_of(job: JobRecord) -> Goals | None:
    """None for a job that wants nothing more than a place."""
    if not job.requests and job.objective is None:
        return None
    working = {task.name for task in job.tasks if task.work is not None}
    users = {user.name: user for user in job.users}
    messages = {(flow.src, flow.dst): flow.message for flow in job.flows}
    chains = () if _partly_over(job) else routes_of(job.requests, job.tasks)
    return Goals(
        chains=tuple(
            Chain(
                route.request.name,
                tuple(step for step in route.works if step in working),
                tuple(route.flows),
                access_ms(route, users, messages),
                None if route.request.deadline is None else route.request.deadline / 1000,
                route.request.hard,
            )
            for route in chains
        ),
        weights=ObjectiveWeights() if job.objective is None else ObjectiveWeights(**job.objective.model_dump()),
    )


def request_times(job: JobRecord, times: Sequence[CoreTime]) -> list[RequestTime]:
    """What requests take, as the core has worked it out, with the parts in the order in which a request meets them:
    the core names tasks before flows."""
    routes = {route.request.name: route for route in routes_of(job.requests, job.tasks)} if times else {}
    working = {task.name for task in job.tasks if task.work is not None}
    found = []
    for each in times:
        told, steps = each.to_dict(), list(each.to_dict()["steps"])
        route = routes[each.name]
        worked = sum(name in working for name in route.works)
        access = [steps.pop(0)] if len(steps) > len(route.flows) + worked else []
        flows = steps[len(steps) - len(route.flows) :]
        tasks = iter(steps[: len(steps) - len(route.flows)])
        ordered = list(access)
        for i, name in enumerate(route.steps):
            if name in working and i < len(route.works):
                ordered.append(next(tasks))
            ordered += flows[i : i + 1]
        found.append(RequestTime.model_validate(told | {"user": route.request.user, "steps": ordered}))
    return found


def _partly_over(job: JobRecord) -> bool:
    """Whether tasks of a suspended job have ended, so that no request goes through any more."""
    return job.state is JobState.SUSPENDED and any(each.over for each in job.allocations)


def node_profile(node: NodeRecord) -> NodeProfile | None:
    """What the core is told of a node; None where nothing is known. Users are resolved before, so it needs no
    position."""
    power = node.profile.power if node.profile is not None else []
    if not node.speeds and not power:
        return None
    if len(power) == 2:
        return NodeProfile(dict(node.speeds), idle_w=power[0], peak_w=power[1])
    return NodeProfile(dict(node.speeds), power_w=tuple(power) or None)


def link_profile(delay: int) -> LinkProfile | None:
    """``delay`` in microseconds."""
    return LinkProfile(delay / 1000) if delay else None
