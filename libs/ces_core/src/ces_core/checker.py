"""An independent checker of plans: plain Python over the instance and the answer, as ``ces solve`` reads and prints
them.

It shares no code with solvers, objective or paths, so that their mistakes cannot hide here.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ces_core.service_checker import ServiceChecker, has_goals, speed_of

TOLERANCE = 1e-9
"""Relative to the capacity or quantity in question; for metrics, absolute."""


@dataclass(frozen=True)
class Violation:
    """One broken rule. ``code`` is for programs, ``message`` names the offender and the numbers."""

    code: str
    message: str

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def check(
    instance: Mapping[str, Any],
    answer: Mapping[str, Any],
    *,
    basis: str = "system",
    paths: int | None = None,
    path_metric: str = "hops",
) -> list[Violation]:
    """The rules that the answer breaks; empty for a correct plan.

    ``paths``: None if flows had to take hop-shortest paths, K if they might take the K simple ones that are
    the shortest by ``path_metric``: ``hops`` or ``delay``.

    ``instance`` is what ``ces solve`` reads (:func:`ces_core.model.instance.write_instance`), ``answer`` what it prints
    (:meth:`ces_core.model.plan.Result.to_dict`). Of an infeasible answer only the presence of a reason is checked:
    whether it is true is beyond a checker. Raises TypeError for objects in place of these.
    """
    for what, given, made in (
        ("instance", instance, "write_instance(problem)"),
        ("answer", answer, "result.to_dict()"),
    ):
        if not isinstance(given, Mapping):
            raise TypeError(f"{what}: the checker reads plain data, not a {type(given).__name__}; give it {made}")
    if not answer.get("feasible"):
        return [] if answer.get("reason") else [Violation("no-reason", "infeasible without a reason")]
    checker = _Checker(instance, answer, paths, path_metric)
    checker.path_set()
    checker.placement()
    if not checker.found:
        checker.flows()
    if not checker.found:
        checker.service()
    if not checker.found:
        checker.metrics(basis)
    return checker.found


class _Checker:
    def __init__(
        self, instance: Mapping[str, Any], answer: Mapping[str, Any], paths: int | None, path_metric: str
    ) -> None:
        self.instance, self.answer, self.paths, self.path_metric = instance, answer, paths, path_metric
        self.found: list[Violation] = []
        self.nodes = {node["name"]: node for node in instance["nodes"]}
        self.links = {(link["src"], link["dst"]): link for link in instance.get("links", [])}
        self.tasks = {task["name"]: task for task in instance["job"]["tasks"]}
        self.asked = {(flow["src"], flow["dst"]): flow for flow in instance["job"].get("flows", [])}
        self.given: dict[str, str] = dict(answer.get("assignments", {}))
        self.rates: dict[tuple[str, str], float] = {}
        self.routes: dict[tuple[str, str], list[str]] = {}
        self.carried: dict[tuple[str, str], list[float]] = {}
        self.before: dict[str, list[str]] = {name: [] for name in self.nodes}
        self.after: dict[str, list[str]] = {name: [] for name in self.nodes}
        for src, dst in self.links:
            self.after[src].append(dst)
            self.before[dst].append(src)

    def say(self, code: str, message: str) -> None:
        self.found.append(Violation(code, message))

    def path_set(self) -> None:
        kind = "shortest" if self.path_metric == "hops" else "least-delay"
        expected = "hop-shortest" if self.paths is None else f"{self.paths}-{kind}"
        said = self.answer.get("paths", expected)
        if said != expected:
            self.say("path-set", f"paths are {said}, not {expected}")

    def placement(self) -> None:
        for name in self.tasks.keys() - self.given.keys():
            self.say("unplaced", f"task {name} has no node")
        for name, node in self.given.items():
            if name not in self.tasks:
                self.say("unknown-task", f"{name} is no task of the job")
            elif node not in self.nodes:
                self.say("unknown-node", f"task {name} is on {node}, which does not exist")
            elif self.tasks[name].get("allowed") is not None and node not in self.tasks[name]["allowed"]:
                self.say("not-allowed", f"task {name} may not run on {node}")
            elif not any(self.nodes[node].get(what, 0.0) > 0 for what in ("cpu", "memory", "gpu")):
                self.say("switch", f"task {name} is on {node}, which has no capacity")
            elif speed_of(self.nodes[node], self.tasks[name]) == 0:
                self.say("no-speed", f"task {name} is on {node}, which has no speed for its class of work")
        if self.found:
            return
        for what in ("cpu", "memory", "gpu"):
            for name, node in self.nodes.items():
                new = sum(task.get(what, 0.0) for t, task in self.tasks.items() if self.given[t] == name)
                capacity = node.get(what, 0.0)
                total = node.get(f"{what}_used", 0.0) + new
                if new > 0 and total > capacity + TOLERANCE * capacity:
                    self.say(f"{what}-capacity", f"node {name} would hold {total} of {capacity}")

    def flows(self) -> None:
        for flow in self.answer.get("flows", []):
            key = (flow["src"], flow["dst"])
            if key not in self.asked or key in self.rates:
                self.say("unknown-flow", f"flow {key[0]} -> {key[1]} is not asked for, or given twice")
                continue
            self.rates[key], self.routes[key] = flow["bandwidth"], list(flow["path"])
            for hop in pairwise(flow["path"]):
                self.carried.setdefault(hop, []).append(flow["bandwidth"])
            self._one_flow(key)
        for src, dst in self.asked.keys() - self.rates.keys():
            self.say("unplanned-flow", f"flow {src} -> {dst} is missing")
        if not self.found:
            self._capacities()

    def _one_flow(self, key: tuple[str, str]) -> None:
        label = f"flow {key[0]} -> {key[1]}"
        rate, route, asked = self.rates[key], self.routes[key], self.asked[key]
        low, high = asked.get("min", 0.0), asked["max"]
        if not math.isfinite(rate) or rate < low - TOLERANCE * low or rate > high + TOLERANCE * high:
            self.say("rate", f"{label} gets {rate}, outside {low}..{high}")
        ends = [end[1:] if end.startswith("@") else self.given[end] for end in key]
        starts = asked.get("sources") or [ends[0]]
        if not route or route[0] not in starts or route[-1] != ends[1]:
            self.say("path-ends", f"{label} runs {route}, its ends are on {ends}")
            return
        missing = [hop for hop in pairwise(route) if hop not in self.links]
        if missing:
            self.say("path-link", f"{label} uses links that do not exist: {missing}")
        else:
            self._length(label, route)

    def _length(self, label: str, route: list[str]) -> None:
        left = self._hops_to(route[-1])
        hops, least = len(route) - 1, left[route[0]]
        if self.paths is None:
            if hops != least:
                self.say("path-length", f"{label} takes {hops} hops where {least} would do")
        elif len(set(route)) <= hops:
            self.say("path-simple", f"{label} passes a node twice: {route}")
        elif self.path_metric == "delay":
            faster = self._faster(route, self.paths)
            if faster >= self.paths:
                self.say("path-length", f"{label} takes a path where {self.paths} have less delay")
        elif self._shorter(route, left, self.paths) >= self.paths:
            self.say("path-length", f"{label} takes {hops} hops where {self.paths} paths are shorter")

    def _hops_to(self, goal: str) -> dict[str, int]:
        left, queue = {goal: 0}, deque([goal])
        while queue:
            here = queue.popleft()
            for other in self.before[here]:
                if other not in left:
                    left[other] = left[here] + 1
                    queue.append(other)
        return left

    def _shorter(self, route: list[str], left: Mapping[str, int], most: int) -> int:
        """The number of simple paths with fewer hops between the ends of ``route``, counted up to ``most``."""
        hops, count = len(route) - 1, 0
        begun = [route[:1]]
        while begun and count < most:
            path = begun.pop()
            for other in self.after[path[-1]]:
                if other not in path and len(path) + left.get(other, hops) < hops:
                    if other == route[-1]:
                        count += 1
                    else:
                        begun.append([*path, other])
        return count

    def _faster(self, route: list[str], most: int) -> int:
        """The number of simple paths with less delay between the ends of ``route``, counted up to ``most``."""

        def delay(hop: tuple[str, str]) -> float:
            return float(self.links[hop].get("delay_ms", 0.0))

        left, queue = {route[-1]: 0.0}, [(0.0, route[-1])]
        while queue:
            so_far, here = heapq.heappop(queue)
            for other in self.before[here] if so_far <= left[here] else ():
                total = so_far + delay((other, here))
                if total < left.get(other, math.inf):
                    left[other] = total
                    heapq.heappush(queue, (total, other))
        limit = math.fsum(map(delay, pairwise(route)))
        limit -= TOLERANCE * limit
        count, begun = 0, [(0.0, route[:1])]
        while begun and count < most:
            so_far, path = begun.pop()
            for other in self.after[path[-1]]:
                total = so_far + delay((path[-1], other))
                if other not in path and total + left.get(other, math.inf) < limit:
                    if other == route[-1]:
                        count += 1
                    else:
                        begun.append((total, [*path, other]))
        return count

    def _new_on(self, link: tuple[str, str]) -> float:
        return math.fsum(self.carried.get(link, ()))

    def _capacities(self) -> None:
        shared: dict[str, list[float]] = {}
        for key, link in self.links.items():
            new, used = self._new_on(key), link.get("bandwidth_used", 0.0)
            if new > 0 and used + new > link["bandwidth"] * (1 + TOLERANCE):
                self.say("link-capacity", f"link {key[0]} -> {key[1]} would carry {used + new} of {link['bandwidth']}")
            if link.get("medium") is not None:
                sums = shared.setdefault(link["medium"], [0.0, 0.0])
                sums[0] += new
                sums[1] += used
        for name, (new, used) in shared.items():
            capacity = self.instance["media"][name]
            if new > 0 and used + new > capacity * (1 + TOLERANCE):
                self.say("medium-capacity", f"medium {name} would carry {used + new} of {capacity}")

    def service(self) -> None:
        if has_goals(self.instance["job"]):
            for code, message in ServiceChecker(self.instance, self.given, self.routes, self.rates).limits():
                self.say(code, message)

    def metrics(self, basis: str) -> None:
        weights = self.instance.get("weights") or [1 / 3, 1 / 3, 1 / 3]
        count = 1.0 if basis == "system" else 0.0
        spreads = []
        for what in ("cpu", "memory"):
            use = [
                (
                    count * node.get(f"{what}_used", 0.0)
                    + sum(task.get(what, 0.0) for t, task in self.tasks.items() if self.given[t] == name)
                )
                / node[what]
                for name, node in self.nodes.items()
                if node.get(what, 0.0) > 0
            ]
            spreads.append(_deviation(use))
        use = [
            (count * link.get("bandwidth_used", 0.0) + self._new_on(key)) / link["bandwidth"]
            for key, link in self.links.items()
            if link["bandwidth"] > 0
        ]
        spreads.append(_deviation(use))
        imbalance = sum(weight * spread for weight, spread in zip(weights, spreads, strict=True))
        shares = []
        for key, asked in self.asked.items():
            low, high = asked.get("min", 0.0), asked["max"]
            within = len(self.routes[key]) == 1
            shares.append(1.0 if within or high == low else (self.rates[key] - low) / (high - low))
        satisfaction = math.fsum(shares) / len(shares) if shares else 1.0
        expected = {
            "load_imbalance": imbalance,
            "bandwidth_satisfaction": satisfaction,
            "composite": 0.5 * (1 - imbalance) + 0.5 * satisfaction,
        }
        for name, value in expected.items():
            said = self.answer.get("metrics", {}).get(name)
            if said is None or not abs(said - value) <= TOLERANCE:
                self.say("metric", f"{name} is {value}, the answer says {said}")
        if has_goals(self.instance["job"]):
            judge = ServiceChecker(self.instance, self.given, self.routes, self.rates)
            for code, message in judge.metrics(imbalance, satisfaction, self.answer):
                self.say(code, message)


def _deviation(values: list[float]) -> float:
    if not values:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
