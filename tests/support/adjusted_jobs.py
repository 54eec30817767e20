"""Running jobs whose surroundings change, and the best adjustment of one by looking at every plan."""

from __future__ import annotations

import copy
import math
from functools import lru_cache
from typing import Any

import numpy as np
from goal_instances import Instance, goal_instance
from goal_reference import Leaf, Reference

from ces_core.adjustment.terms import TaskFacts
from ces_core.exact.solver import EXACT
from ces_core.model.instance import read_instance
from ces_core.model.plan import Plan
from ces_core.model.problem import Problem


@lru_cache(maxsize=256)
def running_job(seed: int, tasks: int = 2) -> tuple[Instance, Plan] | None:
    """An instance of three nodes with the best plan that it has; None where there is none, or where `exact` does not
    prove it. Kept, since whether 5 s are enough differs from time to time on a busy machine, and a test that asks again
    must get the same answer: do not change it."""
    instance = goal_instance(seed, nodes=3, tasks=tasks)
    found = EXACT.solve(read_instance(instance), time_limit_s=5.0)
    return (instance, found.plan) if found.plan is not None and found.optimal else None


def changed(instance: Instance, seed: int) -> Instance:
    """The same job after one to three changes: a slower, wider or narrower link, other use of a node, a node that
    became faster, a nearer deadline, more state."""
    rng = np.random.default_rng([seed, 7])
    after = copy.deepcopy(instance)
    for _ in range(int(rng.integers(1, 4))):
        node = after["nodes"][int(rng.integers(len(after["nodes"])))]
        link = after["links"][int(rng.integers(len(after["links"])))]
        match int(rng.integers(6)):
            case 0:
                link["delay_ms"] = round(float(rng.uniform(0.5, 60)), 3)
            case 1:
                link["bandwidth"] = round(link.get("bandwidth_used", 0.0) + float(rng.uniform(1, 200)), 3)
            case 2:
                node["cpu_used"] = round(float(rng.uniform(0, node["cpu"])), 3)
            case 3:
                node["speed"] = {kind: round(float(rng.uniform(0.5, 6)), 3) for kind in ("matrix", "integer")}
            case 4:
                chain = after["job"]["chains"][0]
                deadline = round(chain["deadline_ms"] * float(rng.uniform(0.6, 1.2)), 3)
                for each in after["job"]["chains"]:
                    if each["name"] == chain["name"]:
                        each["deadline_ms"] = deadline
            case _:
                task = after["job"]["tasks"][int(rng.integers(len(after["job"]["tasks"])))]
                task["state"] = round(float(rng.uniform(0, 5e7)))
    return after


class EveryPlan:
    """All plans of a job that runs by ``plan``, with what moving there disturbs; in plain Python."""

    def __init__(self, instance: Instance, plan: Plan, facts: dict[str, TaskFacts], remaining_s: float) -> None:
        self.instance, self.plan, self.facts, self.remaining_s = instance, plan, facts, remaining_s
        self.problem: Problem = read_instance(instance)
        self.reference = Reference(instance, self.problem)
        self.tasks = {task["name"]: task for task in instance["job"]["tasks"]}

    def requests(self, name: str) -> float:
        said = self.facts.get(name, TaskFacts()).requests
        return said if said is not None else self.tasks[name].get("rate", 0.0) or 1.0

    def disturbance(self, leaf: Leaf) -> float:
        """Requests that fall into the moves; tasks here have no state."""
        moved = [name for name, node in leaf.given.items() if node != self.plan.assignments[name]]
        return sum(self.facts.get(name, TaskFacts()).restart_s * self.requests(name) for name in moved)

    def best(self, moves: int, budget: float = math.inf) -> float:
        """The most that a plan at most ``moves`` moves away is worth, its moves paid; minus infinity: there is none."""
        found = -math.inf
        price = 1.0 / (max(self.requests(name) for name in self.tasks) * self.remaining_s)
        for leaf in self.reference.leaves():
            away = sum(node != self.plan.assignments[name] for name, node in leaf.given.items())
            requests = self.disturbance(leaf)
            if away <= moves and requests <= budget:
                value = self.reference.value(leaf, found + requests * price)
                if value is not None:
                    found = max(found, value - requests * price)
        return found


def answer(problem: Problem, plan: Plan) -> dict[str, Any]:
    """The plan as the checker reads answers, with the metrics that it claims."""
    from ces_core.model.objective import metrics_of
    from ces_core.model.plan import Result
    from ces_core.search.diagnosis import SearchTrace

    return Result("adjust", SearchTrace.of(problem).considered, plan, metrics_of(problem, plan)).to_dict(
        paths=problem.path_set
    )
