"""Where a user's application goes: by CES's solver, and by simple rules. All choose nodes only; whatever is chosen
gets the best rates and paths that the solver finds for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import networkx as nx

from ces_common.access_nodes import distance_m
from ces_core.model.instance import read_instance
from ces_core.model.plan import Plan
from ces_core.registry import get_solver
from ces_core.solver import Solver
from ces_experiments.users.city import City, Room, User
from ces_sim.decision import decide

TRIES = 10
"""So many candidates a rule has, in its order, before the user is turned away."""
OBJECTIVE = {"balance": 0.25, "bandwidth": 0.25, "time": 0.5}
MESSAGES = 20_000.0, 2_000.0, 500.0
"""Chosen: bytes of a picture, of what was detected, and of the answer."""
KUBERNETES = get_solver("kubernetes")

Places = Mapping[str, str]
Rule = Callable[[City, Room, User], Iterator[Places]]


def instance(city: City, room: Room, user: User, *, hard: bool, places: Places | None = None) -> dict[str, Any]:
    """Pictures are looked at (``detect``), followed (``track``), and what is seen goes back. ``places``: the only ones
    that tasks may have."""
    nodes = [
        {**node, "cpu_used": room.nodes[node["name"]][0], "memory_used": room.nodes[node["name"]][1]}
        for node in city.nodes
    ]
    links = [{**link, "bandwidth_used": room.links[link["src"], link["dst"]]} for link in city.links]
    here = f"@{user.site}"
    tasks = [_task("detect", 1.0, user.work_ms, user.rate), _task("track", 0.5, user.work_ms / 5, user.rate)]
    if places is not None:
        tasks = [task | {"allowed": [places[task["name"]]]} for task in tasks]
    way = [[here, "detect"], ["detect", "track"], ["track", here]]
    chain = {"name": "seen", "tasks": ["detect", "track"], "flows": way, "fixed_ms": 2 * user.access_ms}
    job = {
        "name": "pictures",
        "tasks": tasks,
        "flows": [_flow(pair, message, user.rate) for pair, message in zip(way, MESSAGES, strict=True)],
        "chains": [chain | {"deadline_ms": user.deadline_ms, "hard": hard}],
        "objective": OBJECTIVE if places is None else {"bandwidth": 0.5, "time": 0.5},
    }
    return {"nodes": nodes, "links": links, "job": job}


def plan_of(solver: Solver, asked: dict[str, Any], seed: int, limit_s: float | None) -> tuple[Plan | None, float]:
    """The plan, if any, and how many ms a request then takes. Raises BadDecisionError."""
    result = decide(solver, read_instance(asked), asked, seed=seed, time_limit_s=limit_s).result
    if result.plan is None or result.metrics is None or result.metrics.service is None:
        return None, float("inf")
    (request,) = result.metrics.service.requests
    return result.plan, request.time_ms


def nearest(city: City, room: Room, user: User) -> Iterator[Places]:
    """The nearest site with room."""
    by_distance = sorted(city.sites, key=lambda site: distance_m(user.position, site.profile.position or user.position))
    return _together(room, city, [site.name for site in by_distance])


def network_cost(city: City, room: Room, user: User) -> Iterator[Places]:
    """The site with room whose way from the user's has the least delay, as network-aware plugins of Kubernetes score
    nodes by the costs between a pod's dependencies."""
    delays = nx.single_source_dijkstra_path_length(city.delays, user.site, weight="delay_ms")
    return _together(room, city, sorted(delays, key=lambda name: (delays[name], name)))


def fastest(city: City, room: Room, user: User) -> Iterator[Places]:
    """The fastest site with room; of equals the one with the least delay."""
    delays = nx.single_source_dijkstra_path_length(city.delays, user.site, weight="delay_ms")
    speeds = {node["name"]: node["speed"]["pictures"] for node in city.nodes}
    return _together(room, city, sorted(delays, key=lambda name: (-speeds[name], delays[name], name)))


def kubernetes(city: City, room: Room, user: User) -> Iterator[Places]:
    """Least allocated and balanced, as kube-scheduler's default scores; what was tried is not tried again."""
    asked = instance(city, room, user, hard=False)
    bare = {key: asked["job"][key] for key in ("name", "tasks", "flows")}
    bare["tasks"] = [{key: task[key] for key in ("name", "cpu", "memory")} for task in bare["tasks"]]
    bare["flows"] = [{key: flow[key] for key in ("src", "dst", "min", "max")} for flow in bare["flows"]]
    nodes = [{key: value for key, value in node.items() if key != "speed"} for node in asked["nodes"]]
    links = [{key: value for key, value in link.items() if key != "delay_ms"} for link in asked["links"]]
    tried: set[str] = set()
    while True:
        left = sorted({node["name"] for node in nodes} - tried)
        bare["tasks"] = [task | {"allowed": left} for task in bare["tasks"]]
        plan = KUBERNETES.solve(read_instance({"nodes": nodes, "links": links, "job": bare})).plan
        if plan is None:
            return
        yield plan.assignments
        tried |= set(plan.assignments.values())


RULES: dict[str, Rule] = {
    "nearest-site": nearest,
    "network-cost": network_cost,
    "fastest": fastest,
    "kubernetes": kubernetes,
}
IN_TIME = "nearest-in-time"
"""The nearest site at which the deadline is kept: a simple rule that tries what it chooses."""


def by_rule(
    name: str, solver: Solver, city: City, room: Room, user: User, seed: int, limit_s: float | None
) -> tuple[Plan | None, float]:
    """What the rule's first candidate that has a plan comes to."""
    late_is_none = name == IN_TIME
    for places in islice((nearest if late_is_none else RULES[name])(city, room, user), TRIES):
        plan, took = plan_of(solver, instance(city, room, user, hard=False, places=places), seed, limit_s)
        if plan is not None and (took <= user.deadline_ms or not late_is_none):
            return plan, took
    return None, float("inf")


def _together(room: Room, city: City, names: list[str]) -> Iterator[Places]:
    """Both tasks at a site that has room for both."""
    totals = {node["name"]: (node["cpu"], node["memory"]) for node in city.nodes}
    for name in names:
        free = [whole - used for whole, used in zip(totals[name], room.nodes[name], strict=True)]
        if free[0] >= 1.5 and free[1] >= 2.0:
            yield {"detect": name, "track": name}


def _task(name: str, cpu: float, work_ms: float, rate: float) -> dict[str, Any]:
    work = {"per_request": work_ms, "class": "pictures", "threads": 1.0}
    return {"name": name, "cpu": cpu, "memory": 1.0, "work": work, "rate": rate}


def _flow(ends: Sequence[str], message: float, rate: float) -> dict[str, Any]:
    low = message * 8e-6 * rate
    return {"src": ends[0], "dst": ends[1], "min": low, "max": 10 * low, "message": message}
