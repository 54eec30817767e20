"""The best plan of a small job with goals by looking at every one: nodes, then paths, then rates by scipy.

It shares no code with solvers or the model's equations: times, power and reliability are the checker's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from ces_core.model.problem import Problem
from ces_core.network.cache import paths_for
from ces_core.service_checker import ServiceChecker, speed_of

Instance = Mapping[str, Any]
Ends = tuple[str, str]
CLOSE = 1e-9
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
ROUNDS = 200


@dataclass(frozen=True)
class Leaf:
    """A choice of nodes and paths, by names."""

    given: dict[str, str]
    routes: dict[Ends, list[str]]


class Reference:
    """Looks at every plan of an instance; ``problem`` tells which paths there are."""

    def __init__(self, instance: Instance, problem: Problem) -> None:
        self.instance, self.problem, self.job = instance, problem, instance["job"]
        self.nodes = {node["name"]: node for node in instance["nodes"]}
        self.links = {(link["src"], link["dst"]): link for link in instance["links"]}
        self.flows = {(flow["src"], flow["dst"]): flow for flow in self.job["flows"]}
        usual = {"balance": 0.5, "bandwidth": 0.5}
        self.weights = dict.fromkeys(("balance", "bandwidth", "time", "energy"), 0.0) | (
            self.job.get("objective") or usual
        )

    def best(self) -> float | None:
        """The highest objective of any plan; None where there is none."""
        found: float | None = None
        for leaf in self.leaves():
            value = self.value(leaf, -math.inf if found is None else found)
            if value is not None and (found is None or value > found):
                found = value
        return found

    def least_time(self, name: str) -> float:
        """The least time of a request class over all plans, whatever other goals there are: at the widest rates, where
        flows do not hinder each other; with ``hard`` goals ignored."""
        times = []
        for leaf in self.leaves(goals=False):
            rates = {ends: self._widest(leaf.routes[ends], ends) for ends in self.flows}
            judge = ServiceChecker(self.instance, leaf.given, leaf.routes, rates)
            times += [total for each, total, _, _ in judge.requests() if each == name]
        return min(times, default=math.inf)

    def most_reliable(self) -> float:
        works = [
            ServiceChecker(self.instance, leaf.given, leaf.routes, dict.fromkeys(leaf.routes, 1.0)).reliability()
            for leaf in self.leaves(goals=False)
        ]
        return max(works, default=0.0)

    def leaves(self, *, goals: bool = True) -> Iterator[Leaf]:
        """Every choice that nodes and limits of tasks, groups, held places and minimums admit; with ``goals`` the
        reliability, too."""
        tasks = self.job["tasks"]
        for places in itertools.product(self.nodes, repeat=len(tasks)):
            given = {task["name"]: place for task, place in zip(tasks, places, strict=True)}
            if not self._fits(given):
                continue
            for paths in itertools.product(*(self._paths(ends, given) for ends in self.flows)):
                routes = dict(zip(self.flows, paths, strict=True))
                if not self._carries(routes):
                    continue
                rates = dict.fromkeys(routes, math.inf)
                broken = {code for code, _ in ServiceChecker(self.instance, given, routes, rates).limits()}
                if broken & {"load", "task-time", "group", "held"} or (goals and "reliability" in broken):
                    continue
                yield Leaf(given, routes)

    def _fits(self, given: Mapping[str, str]) -> bool:
        for task in self.job["tasks"]:
            node = self.nodes[given[task["name"]]]
            if task.get("allowed") is not None and node["name"] not in task["allowed"]:
                return False
            if speed_of(node, task) == 0:
                return False
        return all(
            node.get(f"{what}_used", 0.0)
            + sum(task.get(what, 0.0) for task in self.job["tasks"] if given[task["name"]] == name)
            <= node.get(what, 0.0) * (1 + 1e-12)
            for name, node in self.nodes.items()
            for what in ("cpu", "memory")
        )

    def _paths(self, ends: Ends, given: Mapping[str, str]) -> Iterator[list[str]]:
        names = self.problem.cluster.topology.nodes
        index = self.problem.cluster.topology.node_index
        first, last = (end[1:] if end.startswith("@") else given[end] for end in ends)
        for source in self.flows[ends].get("sources") or [first]:
            for path in paths_for(self.problem).between(index[source], index[last]):
                yield [names[n] for n in path.nodes]

    def _free(self, hop: Ends) -> float:
        return float(self.links[hop]["bandwidth"] - self.links[hop].get("bandwidth_used", 0.0))

    def _widest(self, route: list[str], ends: Ends) -> float:
        return min([self.flows[ends]["max"], *(self._free(hop) for hop in itertools.pairwise(route))])

    def _carries(self, routes: Mapping[Ends, list[str]]) -> bool:
        low: dict[Ends, float] = {}
        for ends, route in routes.items():
            for hop in itertools.pairwise(route):
                low[hop] = low.get(hop, 0.0) + self.flows[ends]["min"]
        return all(total <= self._free(hop) for hop, total in low.items())

    def objective(self, leaf: Leaf, rates: Mapping[Ends, float]) -> float:
        """J, from the checker's equations and a few lines for L and D."""
        judge = ServiceChecker(self.instance, leaf.given, leaf.routes, rates)
        spreads = []
        for what in ("cpu", "memory"):
            use = [
                (
                    node.get(f"{what}_used", 0.0)
                    + sum(task[what] for task in self.job["tasks"] if leaf.given[task["name"]] == name)
                )
                / node[what]
                for name, node in self.nodes.items()
            ]
            spreads.append(float(np.std(use)))
        spreads.append(float(np.std(self._use(leaf, rates))))
        shares = []
        for ends, flow in self.flows.items():
            inside, span = len(leaf.routes[ends]) == 1, flow["max"] - flow["min"]
            shares.append(1.0 if inside or span == 0 else (rates[ends] - flow["min"]) / span)
        scored = [
            max(0.0, 1 - total / chain["deadline_ms"])
            for _, total, _, chain in judge.requests()
            if not chain.get("hard")
        ]
        moved = sum(h["cost"] for h in self.job.get("held", []) if leaf.given[h["task"]] != h["node"])
        return (
            self.weights["balance"] * (1 - sum(spreads) / 3)
            + self.weights["bandwidth"] * (sum(shares) / len(shares) if shares else 1.0)
            + self.weights["time"] * (sum(scored) / len(scored) if scored else 1.0)
            + self.weights["energy"] * judge.energy_score()
            - moved
        )

    def _use(self, leaf: Leaf, rates: Mapping[Ends, float]) -> np.ndarray:
        load = {hop: link.get("bandwidth_used", 0.0) for hop, link in self.links.items()}
        for ends, route in leaf.routes.items():
            for hop in itertools.pairwise(route):
                load[hop] += rates[ends]
        return np.array([load[hop] / link["bandwidth"] for hop, link in self.links.items()])

    def value(self, leaf: Leaf, known: float) -> float | None:
        """The best objective on these nodes and paths, or None: nothing above ``known``, or no rates in time."""
        fastest = {ends: self._widest(route, ends) for ends, route in leaf.routes.items()}
        slowest = {ends: self.flows[ends]["min"] for ends in leaf.routes}
        judge = ServiceChecker(self.instance, leaf.given, leaf.routes, fastest)
        requests = {name: (total, chain) for name, total, _, chain in judge.requests()}
        if any(chain.get("hard") and total > chain["deadline_ms"] * (1 + 1e-10) for total, chain in requests.values()):
            return None
        if self._at_most(leaf, fastest, slowest) <= known:
            return None
        soft = [
            name for name, (total, chain) in requests.items() if not chain.get("hard") and total < chain["deadline_ms"]
        ]
        best: float | None = None
        for size in range(len(soft) + 1):
            for met in itertools.combinations(soft, size):
                rates = self._rates(leaf, [name for name, (_, c) in requests.items() if c.get("hard")], list(met))
                if rates is not None:
                    value = self.objective(leaf, rates)
                    best = value if best is None else max(best, value)
        return best

    def _at_most(self, leaf: Leaf, fastest: Mapping[Ends, float], slowest: Mapping[Ends, float]) -> float:
        """More than any rates reach: each part of the objective at the rates that suit it, and no spread of links."""
        spread = float(np.std(self._use(leaf, fastest))) / 3
        quick = ServiceChecker(self.instance, leaf.given, leaf.routes, fastest)
        thrifty = ServiceChecker(self.instance, leaf.given, leaf.routes, slowest)
        saved = thrifty.energy_score() - quick.energy_score()
        return self.objective(leaf, fastest) + self.weights["balance"] * spread + self.weights["energy"] * saved

    def _rates(self, leaf: Leaf, hard: list[str], met: list[str]) -> dict[Ends, float] | None:
        """Rates that maximise the objective where the classes ``met`` count and are in time; by tangents."""
        moving = [ends for ends, route in leaf.routes.items() if len(route) > 1]
        rates = {ends: float(self.flows[ends]["max"]) for ends in leaf.routes}
        if not moving:
            return rates
        soft = {chain["name"] for chain in self.job["chains"] if not chain.get("hard")}
        links = list(self.links)
        crosses = np.array(
            [[hop in set(itertools.pairwise(leaf.routes[ends])) for ends in moving] for hop in links], float
        )
        capacity = np.array([self.links[hop]["bandwidth"] for hop in links])
        free = np.array([self._free(hop) for hop in links])
        spans = np.array([self.flows[ends]["max"] - self.flows[ends]["min"] for ends in moving])
        gain = self.weights["bandwidth"] / len(self.flows) * np.where(spans > 0, 1 / np.where(spans > 0, spans, 1), 0)
        one = dict.fromkeys(leaf.routes, 0.0)
        still = ServiceChecker(self.instance, leaf.given, leaf.routes, one).energy_score()
        for f, ends in enumerate(moving):
            unit = ServiceChecker(self.instance, leaf.given, leaf.routes, one | {ends: 1.0}).energy_score()
            gain[f] += self.weights["energy"] * (unit - still)
        sending = [f for f, ends in enumerate(moving) if self.flows[ends].get("message")]
        ms = {f: 8e-3 * self.flows[moving[f]]["message"] for f in sending}
        chains = [chain for chain in self.job["chains"] if chain["name"] in {*hard, *met}]
        names = sorted({chain["name"] for chain in chains})
        columns = len(moving) + len(sending) + len(names) + 1
        cost = np.zeros(columns)
        cost[: len(moving)] = -gain
        deadline = {chain["name"]: chain["deadline_ms"] for chain in chains}
        for name in met:
            cost[len(moving) + len(sending) + names.index(name)] = self.weights["time"] / len(soft) / deadline[name]
        cost[-1] = self.weights["balance"] / 3
        quiet = ServiceChecker(self.instance, leaf.given, leaf.routes, dict.fromkeys(leaf.routes, math.inf))
        rows, limits = [], []
        for i in range(len(links)):
            rows.append(np.append(crosses[i], np.zeros(columns - len(moving))))
            limits.append(free[i])
        for chain in chains:
            row = np.zeros(columns)
            row[len(moving) + len(sending) + names.index(chain["name"])] = -1.0
            fixed = chain.get("fixed_ms", 0.0) + sum(quiet.task_ms(task) for task in chain["tasks"])
            for ends in chain["flows"]:
                fixed += quiet.flow_ms(tuple(ends))
                if tuple(ends) in moving and moving.index(tuple(ends)) in sending:
                    row[len(moving) + sending.index(moving.index(tuple(ends)))] += 1.0
            rows.append(row)
            limits.append(-fixed)
        low = [float(self.flows[ends]["min"]) for ends in moving]
        wide = [self._widest(leaf.routes[ends], ends) for ends in moving]
        bounds = [*zip(low, wide, strict=True)] + [(0.0, None)] * len(sending)
        bounds += [(0.0, deadline[name] * (1 + 1e-11)) for name in names] + [(0.0, None)]
        used = np.array([self.links[hop].get("bandwidth_used", 0.0) for hop in links])
        best: tuple[float, np.ndarray] | None = None
        for f in sending:
            for at in np.geomspace(low[f], wide[f], 12) if wide[f] > low[f] else [low[f]]:
                self._tangent(rows, limits, columns, f, len(moving) + sending.index(f), ms[f], float(at))
        for _ in range(ROUNDS):
            answer = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds, options=EXACT)
            if answer.status == 2:
                return None
            assert answer.status == 0, answer.message
            x = np.clip(answer.x[: len(moving)], low, wide)
            use = (used + crosses @ x) / capacity
            took = dict.fromkeys(names, 0.0)
            for chain, limit in zip(chains, limits[len(links) : len(links) + len(chains)], strict=True):
                sent = sum(
                    ms[moving.index(tuple(ends))] / x[moving.index(tuple(ends))]
                    for ends in chain["flows"]
                    if tuple(ends) in moving and moving.index(tuple(ends)) in sending
                )
                took[chain["name"]] = max(took[chain["name"]], -limit + sent)
            late = any(took[name] > deadline[name] * (1 + 1e-8) for name in names)
            value = cost[: len(moving)] @ x + cost[-1] * float(np.std(use))
            value += sum(cost[len(moving) + len(sending) + names.index(name)] * took[name] for name in met)
            if not late and (best is None or value < best[0]):
                best = float(value), x
            if best is not None and best[0] - answer.fun <= CLOSE:
                break
            for f in sending:
                self._tangent(rows, limits, columns, f, len(moving) + sending.index(f), ms[f], float(x[f]))
            deviation = float(np.std(use))
            if deviation > 0:
                slope = (use - use.mean()) / (len(use) * deviation)
                row = np.append((slope / capacity) @ crosses, np.zeros(columns - len(moving)))
                row[-1] = -1.0
                rows.append(row)
                limits.append(-float((slope / capacity) @ used))
        assert best is not None
        return rates | dict(zip(moving, best[1].tolist(), strict=True))

    @staticmethod
    def _tangent(rows: list[Any], limits: list[Any], columns: int, f: int, z: int, ms: float, at: float) -> None:
        """``z >= 2 ms / at - ms b / at^2``."""
        row = np.zeros(columns)
        row[f], row[z] = -ms / at**2, -1.0
        rows.append(row)
        limits.append(-2 * ms / at)
