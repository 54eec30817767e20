"""Time, power and reliability: each equation against numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from goal_instances import goal_instance

from ces_core.model.instance import read_instance
from ces_core.model.objective import evaluate
from ces_core.model.plan import Metrics
from ces_core.model.service import (
    RequestTime,
    Service,
    Step,
    flow_ms,
    node_power_w,
    response_ms,
    service_ms,
)
from ces_core.network.cache import paths_for


@pytest.mark.parametrize(
    ("work", "speed", "cpu", "threads", "expected"),
    [
        (35, 1, 1, None, 35.0),  # the reference core itself
        (35, 2.5, 4, 1, 14.0),  # one thread: three of its four cores do not help
        (12, 0.5, 1.5, 4, 16.0),  # 12 / (0.5 * 1.5)
        (12, 0, 1, None, math.inf),
    ],
)
def test_the_service_time_is_work_by_speed_and_cores_that_help(
    work: float, speed: float, cpu: float, threads: float | None, expected: float
) -> None:
    assert service_ms(work, speed, cpu, threads) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("service", "load", "expected"), [(10, 0, 10.0), (10, 0.5, 20.0), (8, 0.8, 40.0), (1, 1, math.inf)]
)
def test_the_response_time_grows_with_the_load(service: float, load: float, expected: float) -> None:
    assert response_ms(service, load) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("delays", "message", "rate", "expected"),
    [
        ([], 1_000_000, 1, 0.0),  # within a node
        ([2, 3.5], 0, 0, 5.5),  # no message: the path alone
        ([1], 125_000, 100, 11.0),  # a megabit at 100 Mbit/s takes 10 ms
        ([1], 1, 0, math.inf),
    ],
)
def test_a_flow_takes_its_path_and_the_sending(
    delays: list[float], message: float, rate: float, expected: float
) -> None:
    assert flow_ms(delays, message, rate) == pytest.approx(expected)


@pytest.mark.parametrize(("use", "expected"), [(0, 4.0), (0.25, 6.5), (1, 14.0), (1.4, 14.0)])
def test_power_is_a_straight_line_from_idle_to_peak(use: float, expected: float) -> None:
    curve = [4 + 10 * i / 10 for i in range(11)]
    assert node_power_w(curve, use) == pytest.approx(expected)


@pytest.mark.parametrize(("use", "expected"), [(0.1, 30.0), (0.05, 20.0), (0.97, 97.0)])
def test_power_follows_a_curve_between_its_points(use: float, expected: float) -> None:
    assert node_power_w([10, 30, 40, 48, 55, 61, 67, 74, 82, 90, 100], use) == pytest.approx(expected)


INSTANCE: dict[str, Any] = {
    "nodes": [
        {"name": "a", "cpu": 4, "memory": 8, "cpu_used": 1, "idle_w": 5, "peak_w": 25, "reliability": 0.99},
        {"name": "b", "cpu": 8, "memory": 8, "speed": {"matrix": 2}, "idle_w": 10, "peak_w": 50, "sleeping": True},
        {"name": "s", "reliability": 0.9},
    ],
    "links": [
        {"src": "a", "dst": "s", "bandwidth": 100, "delay_ms": 2, "nj_per_bit": 100, "reliability": 0.95},
        {"src": "s", "dst": "b", "bandwidth": 100, "delay_ms": 3, "nj_per_bit": 50},
        {"src": "b", "dst": "s", "bandwidth": 100, "delay_ms": 3},
        {"src": "s", "dst": "a", "bandwidth": 100, "delay_ms": 2},
    ],
    "job": {
        "tasks": [
            {"name": "t", "cpu": 2, "memory": 1, "work": {"per_request": 20}, "rate": 50},
            {
                "name": "u",
                "cpu": 2,
                "memory": 1,
                "work": {"per_request": 24, "class": "matrix", "threads": 1},
                "rate": 25,
            },
        ],
        "flows": [{"src": "t", "dst": "u", "min": 10, "max": 50, "message": 25_000}],
        "chains": [
            {"name": "loop", "tasks": ["t", "u"], "flows": [["t", "u"]], "fixed_ms": 4, "deadline_ms": 100},
            {"name": "short", "tasks": ["t"], "deadline_ms": 10},
            {"name": "told", "tasks": ["u"]},
        ],
        "objective": {"balance": 0.1, "bandwidth": 0.2, "time": 0.3, "energy": 0.4},
        "held": [{"task": "t", "node": "b", "cost": 0.05}],
    },
}


def _evaluated(rate: float) -> Metrics:
    problem = read_instance(INSTANCE)
    (path,) = paths_for(problem).between(0, 1)
    return evaluate(problem, [0, 1], [path], [rate])


def test_a_plan_by_hand() -> None:
    metrics = _evaluated(20.0)
    service = metrics.service
    assert service is not None
    # t on a: 20 / 2 = 10 ms alone, load 50 * 10 / 1000 = 0.5, so 20 ms. u on b: 24 / (2 * 1) = 12, load 0.3, 12 / 0.7.
    # The flow: 2 + 3 ms, and 200,000 bit at 20 Mbit/s are 10 ms.
    loop, short, told = service.requests
    assert loop.time_ms == pytest.approx(4 + 20 + 12 / 0.7 + 15)
    assert [(step.what, pytest.approx(step.ms)) for step in loop.steps] == [
        ("access", 4),
        ("t on a", 20),
        ("u on b", 12 / 0.7),
        ("a -> b", 15),
    ]
    assert (short.time_ms, short.missing_ms, told.deadline_ms) == (pytest.approx(20), pytest.approx(10), None)
    assert service.time_score == pytest.approx(((1 - loop.time_ms / 100) + 0) / 2)
    # a: 20 W over 4 cores, two of them more; b: awake with 10 + 40 / 4; links: 100 nJ * 20 Mbit/s = 2 W, and 1 W.
    assert service.power_change_w == pytest.approx(10 + 20 + 3)
    # Alone, t and u add 10 W each on a or b, b's 10 W of waking apart; the dearest link at 50 Mbit/s draws 5 W.
    assert service.energy_score == pytest.approx(1 - (33 - 20) / (20 + 20 + 5 - 20))
    assert service.reliability == pytest.approx(0.99 * 0.9 * 0.95)
    assert service.move_cost == pytest.approx(0.05)
    parts = 0.1 * (1 - metrics.load_imbalance) + 0.2 * metrics.bandwidth_satisfaction
    parts += 0.3 * service.time_score + 0.4 * service.energy_score
    assert service.objective == metrics.objective == pytest.approx(parts - 0.05)


def test_a_faster_rate_is_faster_and_costs_power() -> None:
    slow, fast = _evaluated(10.0).service, _evaluated(50.0).service
    assert slow is not None
    assert fast is not None
    assert slow.requests[0].time_ms - fast.requests[0].time_ms == pytest.approx(20 - 4)
    assert fast.power_change_w - slow.power_change_w == pytest.approx(40 * 0.15)


def test_units_change_nothing() -> None:
    scaled = {
        "nodes": [{**n, **{k: 1000 * n[k] for k in ("cpu", "cpu_used") if k in n}} for n in INSTANCE["nodes"]],
        "links": [{**link, "bandwidth": 1e6 * link["bandwidth"]} for link in INSTANCE["links"]],
        "job": INSTANCE["job"]
        | {
            "tasks": [{**task, "cpu": 1000 * task["cpu"]} for task in INSTANCE["job"]["tasks"]],
            "flows": [{**flow, "min": 1e7, "max": 5e7} for flow in INSTANCE["job"]["flows"]],
            "units": {"core": 1000, "mbit": 1e6},
        },
    }
    problem = read_instance(scaled)
    (path,) = paths_for(problem).between(0, 1)
    there, here = evaluate(problem, [0, 1], [path], [2e7]).service, _evaluated(20.0).service
    assert there is not None
    assert here is not None
    assert there.to_dict() == pytest.approx(here.to_dict())
    assert [each.time_ms for each in there.requests] == pytest.approx([each.time_ms for each in here.requests])


def test_tasks_of_one_node_wake_it_once_and_share_its_curve() -> None:
    problem = read_instance(INSTANCE)
    (inside,) = paths_for(problem).between(1, 1)
    service = evaluate(problem, [1, 1], [inside], [50.0]).service
    assert service is not None
    assert service.power_change_w == pytest.approx(10 + 40 * 4 / 8)
    assert service.reliability == pytest.approx(1.0)
    assert service.move_cost == 0


def test_limits_of_tasks_say_where_they_may_run() -> None:
    service = Service(read_instance(INSTANCE))
    assert service.load[:, :2].tolist() == [[0.5, 0.5], [0.6, 0.3]]
    assert service.in_time[:, :2].all()
    hurried = INSTANCE | {"job": INSTANCE["job"] | {"tasks": [dict(t) for t in INSTANCE["job"]["tasks"]]}}
    hurried["job"]["tasks"][0]["rate"] = 81
    hurried["job"]["tasks"][1]["longest_ms"] = 20
    assert Service(read_instance(hurried)).in_time[:, :2].tolist() == [[False, False], [False, True]]


def test_the_sentence_names_the_longest_step() -> None:
    steps = (Step("t0 on roof1", 19.0), Step("roof1 -> gate1", 22.0), Step("t1 on gate1", 20.0))
    request = RequestTime("loop", 61.0, 50.0, True, steps)
    assert request.text() == "loop: 61 ms of 50 ms, 22 ms of it roof1 -> gate1"
    assert request.missing_ms == 11


def test_a_time_without_end_is_null_in_an_answer() -> None:
    request = RequestTime("loop", math.inf, 50.0, False, (Step("a -> b", math.inf),))
    assert request.to_dict()["time_ms"] is None
    assert request.to_dict()["steps"] == [{"what": "a -> b", "ms": None}]
    assert request.score == 0


@pytest.mark.parametrize("seed", range(5))
def test_tables_say_what_single_values_say(seed: int) -> None:
    problem = read_instance(goal_instance(seed))
    service = Service(problem)
    for t, cpu in enumerate(problem.demand[:, 0].tolist()):
        for n in range(len(problem.cluster.topology.nodes)):
            alone = service.power_w(n, cpu) - service.power_w(n, 0.0)
            assert service.power_alone_w[t, n] == pytest.approx(alone, abs=1e-9)
