"""The checker's part on time, power and reliability: the equations of docs/latency.md written a second time, in plain
Python over plain data.

Like :mod:`ces_core.checker`, of which it is a part, it shares no code with what it judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

TOLERANCE = 1e-9
"""Relative to the limit in question; for metrics, absolute up to 1 and relative above."""
MOST_LOADED = 0.8
Finding = tuple[str, str]
"""A code for programs, and a message that names the offender and the numbers."""
Ends = tuple[str, str]


def has_goals(job: Mapping[str, Any]) -> bool:
    """Whether more than amounts and bandwidth decides on the job."""
    usual = {"balance": 0.5, "bandwidth": 0.5, "time": 0.0, "energy": 0.0}
    objective = {key: (job.get("objective") or usual).get(key, 0.0) for key in usual}
    return (
        bool(job.get("chains"))
        or bool(job.get("held"))
        or job.get("least_reliability", 0.0) > 0
        or objective != usual
        or any(task.get("rate", 0.0) > 0 or task.get("longest_ms") is not None for task in job["tasks"])
        or any(task.get("group") is not None for task in job["tasks"])
        or any(flow.get("sources") is not None for flow in job.get("flows", []))
    )


def speed_of(node: Mapping[str, Any], task: Mapping[str, Any]) -> float:
    """Times the reference core; 0 where the task's class of work cannot run on the node."""
    kind = (task.get("work") or {}).get("class")
    speeds = node.get("speed")
    return 1.0 if kind is None or speeds is None else float(speeds.get(kind, 0.0))


class ServiceChecker:
    """Judges a placement whose nodes, paths and rates are already known to be possible."""

    def __init__(
        self,
        instance: Mapping[str, Any],
        given: Mapping[str, str],
        routes: Mapping[Ends, Sequence[str]],
        rates: Mapping[Ends, float],
    ) -> None:
        self.given, self.routes, self.rates = given, routes, rates
        self.job = instance["job"]
        self.nodes = {node["name"]: node for node in instance["nodes"]}
        self.links = {(link["src"], link["dst"]): link for link in instance.get("links", [])}
        self.tasks = {task["name"]: task for task in self.job["tasks"]}
        self.flows = {(flow["src"], flow["dst"]): flow for flow in self.job.get("flows", [])}
        units = self.job.get("units") or {}
        self.core, self.mbit = units.get("core", 1.0), units.get("mbit", 1.0)

    def limits(self) -> Iterator[Finding]:
        """The limits that the plan breaks."""
        for name, task in self.tasks.items():
            yield from self._task_limits(name, task)
        together: dict[str, str] = {}
        for name, task in self.tasks.items():
            group = task.get("group")
            if group is not None and together.setdefault(group, self.given[name]) != self.given[name]:
                yield "group", f"task {name} is on {self.given[name]}, its group {group} on {together[group]}"
        for held in self.job.get("held", []):
            if held.get("cost") is None and self.given[held["task"]] != held["node"]:
                yield "held", f"task {held['task']} is on {self.given[held['task']]}, but stays on {held['node']}"
        for name, total, steps, chain in self.requests():
            deadline = chain.get("deadline_ms")
            if chain.get("hard") and deadline is not None and total > deadline * (1 + TOLERANCE):
                where, most = max(steps, key=lambda step: step[1])
                yield (
                    "deadline",
                    f"{name}: {total:.4g} ms of {deadline:.4g} ms, {most:.4g} ms of it {where}; "
                    f"{total - deadline:.4g} ms are missing",
                )
        least, works = self.job.get("least_reliability", 0.0), self.reliability()
        if works < least * (1 - TOLERANCE):
            yield "reliability", f"the plan works with probability {works:.6g}, at least {least:g} is wanted"

    def _task_limits(self, name: str, task: Mapping[str, Any]) -> Iterator[Finding]:
        node = self.given[name]
        loaded = self.load(name)
        if loaded > MOST_LOADED * (1 + TOLERANCE):
            yield "load", f"task {name} is loaded to {loaded:.4g} on {node}, at most {MOST_LOADED} are allowed"
            return
        longest, takes = task.get("longest_ms"), self.task_ms(name)
        if longest is not None and takes > longest * (1 + TOLERANCE):
            yield "task-time", f"task {name} takes {takes:.4g} ms on {node}, at most {longest:.4g} ms are allowed"

    def _alone_ms(self, name: str) -> float:
        """x: one request on the idle node."""
        task = self.tasks[name]
        work = task.get("work")
        if work is None:
            return 0.0
        cores = task.get("cpu", 0.0) / self.core
        if work.get("threads") is not None:
            cores = min(cores, work["threads"])
        return float(work["per_request"] / (speed_of(self.nodes[self.given[name]], task) * cores))

    def load(self, name: str) -> float:
        return float(self.tasks[name].get("rate", 0.0)) * self._alone_ms(name) / 1000

    def task_ms(self, name: str) -> float:
        """tau: one request among others."""
        loaded = self.load(name)
        return self._alone_ms(name) / (1 - loaded) if loaded < 1 else math.inf

    def flow_ms(self, ends: Ends) -> float:
        hops = list(pairwise(self.routes[ends]))
        if not hops:
            return 0.0
        bits, rate = 8 * self.flows[ends].get("message", 0.0), self.rates[ends] / self.mbit * 1e6
        sending = 0.0 if bits == 0 else math.inf if rate == 0 else 1000 * bits / rate
        return math.fsum(self.links[hop].get("delay_ms", 0.0) for hop in hops) + sending

    def requests(self) -> list[tuple[str, float, list[tuple[str, float]], Mapping[str, Any]]]:
        """Name, time, steps and goal of the longest chain of each request class."""
        longest: dict[str, tuple[str, float, list[tuple[str, float]], Mapping[str, Any]]] = {}
        for chain in self.job.get("chains", []):
            steps = [("access", chain["fixed_ms"])] if chain.get("fixed_ms") else []
            steps += [(f"{task} on {self.given[task]}", self.task_ms(task)) for task in chain.get("tasks", [])]
            for src, dst in chain.get("flows", []):
                route = self.routes[src, dst]
                steps.append((f"{route[0]} -> {route[-1]}", self.flow_ms((src, dst))))
            total = sum(takes for _, takes in steps)
            if chain["name"] not in longest or total > longest[chain["name"]][1]:
                longest[chain["name"]] = chain["name"], total, steps, chain
        return list(longest.values())

    def _power(self, node: Mapping[str, Any], more: float) -> float:
        """W with ``more`` CPU in use than now."""
        capacity = node.get("cpu", 0.0)
        use = min(1.0, (node.get("cpu_used", 0.0) + more) / capacity) if capacity > 0 else 0.0
        curve = node.get("power_w")
        if curve is None:
            idle, peak = node.get("idle_w", 0.0), node.get("peak_w", 0.0)
            return float(idle + (peak - idle) * use)
        at = min(9, int(use * 10))
        return float(curve[at] + (curve[at + 1] - curve[at]) * (use * 10 - at))

    def power_change(self) -> float:
        change = 0.0
        for name in set(self.given.values()):
            node = self.nodes[name]
            more = sum(task.get("cpu", 0.0) for t, task in self.tasks.items() if self.given[t] == name)
            change += self._power(node, more) - (0.0 if node.get("sleeping") else self._power(node, 0.0))
        for ends, route in self.routes.items():
            for hop in pairwise(route):
                bit_s = self.rates[ends] / self.mbit * 1e6
                change += self.links[hop].get("nj_per_bit", 0.0) * 1e-9 * bit_s
        return change

    def energy_score(self) -> float:
        low = high = 0.0
        for task in self.tasks.values():
            allowed = task.get("allowed")
            least, most = math.inf, -math.inf
            for name, node in self.nodes.items():
                empty = not any(node.get(what, 0.0) > 0 for what in ("cpu", "memory", "gpu"))
                if empty or (allowed is not None and name not in allowed) or speed_of(node, task) == 0:
                    continue
                now = self._power(node, 0.0)
                alone = self._power(node, task.get("cpu", 0.0)) - now
                least, most = min(least, alone), max(most, alone + (now if node.get("sleeping") else 0.0))
            low, high = low + least, high + most
        dearest = max((link.get("nj_per_bit", 0.0) for link in self.links.values()), default=0.0)
        high += sum(flow["max"] for flow in self.flows.values()) / self.mbit * 1e6 * dearest * 1e-9
        return 1.0 if high <= low else 1 - (self.power_change() - low) / (high - low)

    def reliability(self) -> float:
        nodes = set(self.given.values()).union(*self.routes.values())
        links = {hop for route in self.routes.values() for hop in pairwise(route)}
        parts = [self.nodes[name] for name in nodes] + [self.links[hop] for hop in links]
        return math.prod(float(part.get("reliability", 1.0)) for part in parts)

    def metrics(self, imbalance: float, satisfaction: float, answer: Mapping[str, Any]) -> Iterator[Finding]:
        """What the answer says of its plan, and what is not so."""
        requests = self.requests()
        scored = [
            max(0.0, 1 - total / chain["deadline_ms"])
            for _, total, _, chain in requests
            if chain.get("deadline_ms") is not None and not chain.get("hard")
        ]
        weights = self.job.get("objective") or {"balance": 0.5, "bandwidth": 0.5}
        expected = {
            "time_score": math.fsum(scored) / len(scored) if scored else 1.0,
            "power_change_w": self.power_change(),
            "energy_score": self.energy_score(),
            "reliability": self.reliability(),
            "move_cost": sum(
                held.get("cost") or 0.0 for held in self.job.get("held", []) if self.given[held["task"]] != held["node"]
            ),
        }
        expected["objective"] = (
            weights.get("balance", 0.0) * (1 - imbalance)
            + weights.get("bandwidth", 0.0) * satisfaction
            + weights.get("time", 0.0) * expected["time_score"]
            + weights.get("energy", 0.0) * expected["energy_score"]
            - expected["move_cost"]
        )
        for name, value in expected.items():
            said = answer.get("metrics", {}).get(name)
            if said is None or not abs(said - value) <= TOLERANCE * max(1.0, abs(value)):
                yield "metric", f"{name} is {value}, the answer says {said}"
        told = {each["name"]: each.get("time_ms") for each in answer.get("requests", [])}
        for name, total, _, _ in requests:
            said = told.get(name)
            same = said is None if math.isinf(total) else said is not None and abs(said - total) <= TOLERANCE * total
            if name not in told or not same:
                yield "request-time", f"request {name} takes {total} ms, the answer says {said}"
