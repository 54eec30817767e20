"""The judge's part on time, power and reliability: by hand, mistake by mistake, and against the model's equations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from changed_items import set_item
from goal_instances import goal_instance
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_core.checker import check
from ces_core.model.instance import read_instance
from ces_core.model.objective import evaluate
from ces_core.model.plan import Considered, Plan, Result
from ces_core.network.cache import paths_for
from ces_core.service_checker import ServiceChecker

INSTANCE: dict[str, Any] = {
    "nodes": [
        {"name": "roof1", "cpu": 2, "memory": 4, "idle_w": 2, "peak_w": 10, "reliability": 0.98},
        {"name": "gate1", "cpu": 4, "memory": 4, "speed": {"matrix": 2}, "idle_w": 5, "peak_w": 25},
        {"name": "gate2", "cpu": 4, "memory": 4, "speed": {"integer": 2}},
    ],
    "links": [
        {"src": "roof1", "dst": "gate1", "bandwidth": 100, "delay_ms": 12, "nj_per_bit": 50, "reliability": 0.99},
        {"src": "roof1", "dst": "gate2", "bandwidth": 100},
        {"src": "gate1", "dst": "roof1", "bandwidth": 100},
    ],
    "job": {
        "tasks": [
            {"name": "see", "cpu": 1, "memory": 1, "work": {"per_request": 10}, "rate": 50},
            {"name": "think", "cpu": 2, "memory": 1, "work": {"per_request": 38, "class": "matrix"}, "rate": 50},
        ],
        "flows": [{"src": "see", "dst": "think", "min": 10, "max": 40, "message": 25_000}],
        "chains": [
            {"name": "loop", "tasks": ["see", "think"], "flows": [["see", "think"]], "deadline_ms": 61, "hard": True},
            {"name": "soft", "tasks": ["see"], "fixed_ms": 5, "deadline_ms": 50},
        ],
        "least_reliability": 0.97,
        "objective": {"balance": 0.25, "bandwidth": 0.25, "time": 0.25, "energy": 0.25},
        "held": [{"task": "see", "node": "roof1"}, {"task": "think", "node": "gate2", "cost": 0.125}],
    },
}
# see: 10 ms alone, loaded 0.5, so 20 ms. think: 38 / (2 * 2) = 9.5 ms, loaded 0.475, so 9.5 / 0.525 = 18.095 ms.
# The flow: 12 ms, and 200,000 bit at 20 Mbit/s are 10 ms: 22 ms. Together 60.095 ms.
# Power: roof1 8 W * 1/2 = 4, gate1 20 W * 2/4 = 10, links 50 nJ * 20 Mbit/s = 1 W. Alone: see adds 4 W on roof1, 5 on
# gate1, 0 on gate2; think 10 W on gate1, 8 on roof1; 0 W on gate2 is not allowed. Links at most 2 W.
LOOP_MS = 20 + 9.5 / 0.525 + 22
RATE_SHARE = (20 - 10) / 30
GOOD: dict[str, Any] = {
    "feasible": True,
    "assignments": {"see": "roof1", "think": "gate1"},
    "flows": [{"src": "see", "dst": "think", "bandwidth": 20.0, "path": ["roof1", "gate1"]}],
    "requests": [{"name": "loop", "time_ms": LOOP_MS}, {"name": "soft", "time_ms": 25.0}],
}


def _metrics() -> dict[str, float]:
    def spread(*use: float) -> float:
        mean = sum(use) / len(use)
        return (sum((each - mean) ** 2 for each in use) / len(use)) ** 0.5

    imbalance = (spread(0.5, 0.5, 0) + spread(0.25, 0.25, 0) + spread(0.2, 0, 0)) / 3
    time_score, energy_score = 1 - 25 / 50, 1 - (15 - 8) / (5 + 10 + 2 - 8)
    parts = (1 - imbalance) + RATE_SHARE + time_score + energy_score
    return {
        "load_imbalance": imbalance,
        "bandwidth_satisfaction": RATE_SHARE,
        "composite": 0.5 * (1 - imbalance) + 0.5 * RATE_SHARE,
        "time_score": time_score,
        "power_change_w": 15.0,
        "energy_score": energy_score,
        "reliability": 0.98 * 0.99,
        "move_cost": 0.125,
        "objective": 0.25 * parts - 0.125,
    }


GOOD["metrics"] = _metrics()


def test_a_plan_worked_out_by_hand_passes() -> None:
    assert check(INSTANCE, GOOD) == []


@pytest.mark.parametrize("name", sorted(GOOD["metrics"]))
def test_a_number_that_is_not_so_is_seen(name: str) -> None:
    answer = copy.deepcopy(GOOD)
    answer["metrics"][name] += 1e-6
    assert [violation.code for violation in check(INSTANCE, answer)] == ["metric"]
    del answer["metrics"][name]
    assert [violation.code for violation in check(INSTANCE, answer)] == ["metric"]


def test_a_time_that_is_not_so_is_seen() -> None:
    answer = copy.deepcopy(GOOD)
    answer["requests"][0]["time_ms"] += 1e-3
    answer["requests"].pop()
    assert [violation.code for violation in check(INSTANCE, answer)] == ["request-time", "request-time"]


def _job(*where: Any) -> Callable[[dict[str, Any]], None]:
    return set_item("job", *where)


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (
            _job("chains", 0, "deadline_ms", 50),
            "deadline",
            "loop: 60.1 ms of 50 ms, 22 ms of it roof1 -> gate1; 10.1 ms are missing",
        ),
        (_job("least_reliability", 0.98), "reliability", "works with probability 0.9702, at least 0.98"),
        (_job("tasks", 0, "rate", 81), "load", "task see is loaded to 0.81 on roof1, at most 0.8"),
        (_job("tasks", 0, "longest_ms", 19), "task-time", "task see takes 20 ms on roof1, at most 19 ms"),
        (
            lambda instance: [task.update(group="pair") for task in instance["job"]["tasks"]],
            "group",
            "task think is on gate1, its group pair on roof1",
        ),
        (_job("held", 0, "node", "gate1"), "held", "task see is on roof1, but stays on gate1"),
        (_job("tasks", 1, "work", "class", "integer"), "no-speed", "gate1, which has no speed"),
    ],
)
def test_a_broken_goal_is_named_with_its_numbers(
    change: Callable[[dict[str, Any]], Any], code: str, message: str
) -> None:
    instance = copy.deepcopy(INSTANCE)
    change(instance)
    found = check(instance, GOOD)
    assert found[0].code == code
    assert message in found[0].message


def test_the_longest_branch_of_a_request_counts() -> None:
    instance = copy.deepcopy(INSTANCE)
    branch = {"name": "loop", "tasks": ["think"], "fixed_ms": 60, "deadline_ms": 61, "hard": True}
    instance["job"]["chains"].append(branch)
    (found,) = check(instance, GOOD)
    assert found.message == "loop: 78.1 ms of 61 ms, 60 ms of it access; 17.1 ms are missing"


def test_a_flow_may_come_from_any_of_its_sources() -> None:
    instance, answer = copy.deepcopy(INSTANCE), copy.deepcopy(GOOD)
    instance["job"]["flows"].append({"src": "@gate2", "dst": "see", "min": 0, "max": 1})
    answer["flows"].append({"src": "@gate2", "dst": "see", "bandwidth": 1.0, "path": ["gate1", "roof1"]})
    assert [violation.code for violation in check(instance, answer)] == ["path-ends"]
    instance["job"]["flows"][1]["sources"] = ["gate2", "gate1"]
    assert {violation.code for violation in check(instance, answer)} == {"metric"}


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 100_000), data=st.data())
def test_the_model_and_the_judge_agree_on_any_plan(seed: int, data: st.DataObject) -> None:
    """The two were written apart: their numbers are the same for plans good and bad."""
    instance = goal_instance(seed)
    problem = read_instance(instance)
    nodes = problem.cluster.topology.nodes
    assignment = [
        data.draw(st.sampled_from([n for n in range(len(nodes)) if row[n]] or [0])) for row in problem.allowed
    ]
    if not all(problem.allowed[t, n] for t, n in enumerate(assignment)):
        return
    paths, rates = [], []
    for flow, (a, b) in zip(problem.flows, problem.flow_ends(assignment), strict=True):
        paths.append(data.draw(st.sampled_from(paths_for(problem).between(a, b))))
        rates.append(data.draw(st.floats(flow.min, flow.max)))
    metrics = evaluate(problem, assignment, paths, rates)
    plan = Plan.of(problem, assignment, paths, rates)
    answer = Result("s", Considered((), (), problem.allowed.astype("int8")), plan, metrics).to_dict()
    routes = {(flow.src, flow.dst): list(flow.path) for flow in plan.flows}
    given_rates = {(flow.src, flow.dst): flow.bandwidth for flow in plan.flows}
    judge = ServiceChecker(instance, plan.assignments, routes, given_rates)
    assert list(judge.metrics(metrics.load_imbalance, metrics.bandwidth_satisfaction, answer)) == []
