"""Whether a plan keeps what an application says of its users and requests: worked out again from what the manager
knows, in code of its own. Pure; times in microseconds.

Equations as in docs/latency.md: a request takes x = work / (speed cores) of an idle core, and x / (1 - rate x) among
others (M/G/1 processor sharing); a flow takes the delays of its path and its message at its rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from ces_common.application import Request, Route, User, Work, access_ms, request_rates, routes_of
from ces_common.jobfile import Flow, Task
from ces_common.messages.plans import FlowPlan
from ces_manager.plans.feasibility import Misfit, Obstacle, Residual, ResidualNode

MOST_LOAD: Final = 0.8
"""Of a task: above it queues grow long before the formula shows it."""
ROUNDING: Final = 1e-6
"""Relative: plans have rates in whole bit/s, which are rounded down."""


def request_misfit(
    tasks: Sequence[Task],
    flows: Sequence[Flow],
    users: Sequence[User],
    requests: Sequence[Request],
    places: Mapping[str, str],
    assignments: Mapping[str, str],
    given: Sequence[FlowPlan],
    residual: Residual,
) -> Misfit | None:
    """The first reason why a plan that fits the cluster does not fit its application. ``places``: user -> access
    node."""
    for task in tasks:
        if task.user is not None and assignments[task.name] != places[task.user]:
            where = f"{task.name} belongs at user {task.user}, that is on node {places[task.user]}"
            return Misfit(Obstacle.NODE, f"{where}, the plan puts it on {assignments[task.name]}")
    routes = routes_of(requests, tasks)
    rates, took = request_rates(routes), dict[str, float]()
    for task in tasks:
        if task.work is None:
            continue
        name = assignments[task.name]
        if task.work.work_class is not None and task.work.work_class not in residual.nodes[name].speeds:
            unmeasured = f"node {name} was not measured for {task.work.work_class}, the work of {task.name}"
            return Misfit(Obstacle.NODE, unmeasured)
        took[task.name] = _service_us(task.work, task.cpu, residual.nodes[name])
        load = rates.get(task.name, 0.0) * took[task.name] / 1e6
        if load > MOST_LOAD * (1 + ROUNDING):
            return Misfit(
                Obstacle.NODE, f"{task.name} would be loaded to {load:.3g} on node {name}, {MOST_LOAD} at most"
            )
        took[task.name] /= 1 - load
        if task.work.longest is not None and took[task.name] > task.work.longest * (1 + ROUNDING):
            slow = f"{task.name} would take {took[task.name] / 1000:.4g} ms on node {name}"
            return Misfit(Obstacle.NODE, f"{slow}, {task.work.longest / 1000:.4g} ms are its limit")
    known, messages = {user.name: user for user in users}, {(flow.src, flow.dst): flow.message for flow in flows}
    plans = {(flow.src, flow.dst): flow for flow in given}
    late = (why for route in routes for why in _late(route, known, messages, plans, took, residual))
    return next((Misfit(Obstacle.DEADLINE, why) for why in late), None)


def _late(
    route: Route,
    users: Mapping[str, User],
    messages: Mapping[tuple[str, str], int],
    plans: Mapping[tuple[str, str], FlowPlan],
    took: Mapping[str, float],
    residual: Residual,
) -> Iterator[str]:
    request = route.request
    if not request.hard or request.deadline is None:
        return
    total = access_ms(route, users, messages) * 1000 + sum(took.get(step, 0.0) for step in route.works)
    total += sum(_flow_us(plans[flow], messages[flow], residual) for flow in route.flows)
    if math.isinf(total):
        yield f"request {request.name} would never come through: a flow of it has no bandwidth"
    elif total > request.deadline * (1 + ROUNDING):
        yield f"request {request.name} would take {total / 1000:.4g} ms of {request.deadline / 1000:.4g} ms"


def _service_us(work: Work, cpu: int, node: ResidualNode) -> float:
    speed = 1.0 if work.work_class is None else node.speeds[work.work_class]
    cores = cpu / 1000 if work.threads is None else min(cpu / 1000, work.threads)
    return work.per_request / (speed * cores)


def _flow_us(flow: FlowPlan, message: int, residual: Residual) -> float:
    hops = list(pairwise(flow.path))
    if hops and message and not flow.rate:  # its path is broken
        return math.inf
    sending = message * 8e6 / flow.rate if hops and message else 0.0
    return sending + sum(residual.links[hop].delay for hop in hops)
