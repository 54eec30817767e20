"""Rates that trade satisfaction, spread, energy and time, against numbers by hand and a general solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ces_core.bandwidth.goal_rates import NARROWEST, RateGoal, goal_rates
from ces_core.model.instance import read_instance
from ces_core.model.path import Path
from ces_core.model.service import Service
from ces_core.network.cache import paths_for


def _shared(flows: int, bandwidth: float = 100.0, **job: Any) -> tuple[Service, list[int], list[Path]]:
    """Flows from a to b over one link, each with a message of a megabit and a request of its own."""
    instance = {
        "nodes": [{"name": "a", "cpu": 9, "memory": 1}, {"name": "b", "cpu": 9, "memory": 1}],
        "links": [
            {"src": "a", "dst": "b", "bandwidth": bandwidth, "delay_ms": 1},
            {"src": "b", "dst": "a", "bandwidth": bandwidth},
        ],
        "job": {
            "tasks": [{"name": f"{end}{i}", "cpu": 1} for i in range(flows) for end in "xy"],
            "flows": [{"src": f"x{i}", "dst": f"y{i}", "min": 0, "max": 100, "message": 125_000} for i in range(flows)],
            "chains": [
                {"name": f"r{i}", "tasks": [f"x{i}"], "flows": [[f"x{i}", f"y{i}"]], "deadline_ms": 50}
                for i in range(flows)
            ],
        }
        | job,
    }
    problem = read_instance(instance)
    (path,) = paths_for(problem).between(0, 1)
    return Service(problem), [0, 1] * flows, [path] * flows


def test_time_is_split_by_the_roots_of_what_it_is_worth() -> None:
    """To minimise 4 * 1000/b0 + 1000/b1 with b0 + b1 = 90: b0 = 60, b1 = 30."""
    service, nodes, paths = _shared(2, bandwidth=90.0)
    goal = RateGoal(np.zeros(2), time_value={"r0": 4.0, "r1": 1.0}, time_limit={"r0": 100.0, "r1": 100.0})
    found = goal_rates(service, nodes, paths, goal)
    assert found is not None
    assert found.bandwidth == pytest.approx((60, 30), rel=1e-3)
    assert -found.value == pytest.approx(4 * (1 + 1000 / 60) + 1 + 1000 / 30, abs=1e-8)
    assert 0 <= found.bound - found.value <= 1e-9


def test_a_limit_gives_a_rate_and_no_more() -> None:
    """A message of 1 Mbit within 26 ms of which 1 is the way: 40 Mbit/s, where rates cost something."""
    service, nodes, paths = _shared(1)
    found = goal_rates(service, nodes, paths, RateGoal(np.array([-1.0]), time_limit={"r0": 26.0}))
    assert found is not None
    assert found.bandwidth == pytest.approx((40,), rel=1e-8)
    request = service.requests(nodes, paths, found.bandwidth)[0]
    assert request.time_ms <= 26 * (1 + 1e-9)


def test_limits_that_links_cannot_carry_are_refused() -> None:
    service, nodes, paths = _shared(3)
    limits = dict.fromkeys(("r0", "r1", "r2"), 31.0)  # 33.3 Mbit/s each
    assert goal_rates(service, nodes, paths, RateGoal(np.zeros(3), time_limit=limits)) is not None
    limits["r1"] = 30.9
    assert goal_rates(service, nodes, paths, RateGoal(np.zeros(3), time_limit=limits)) is None


def test_a_limit_that_is_just_met_is_met() -> None:
    service, nodes, paths = _shared(1)
    found = goal_rates(service, nodes, paths, RateGoal(np.array([-1.0]), time_limit={"r0": 11.0}))
    assert found is not None
    assert found.bandwidth == pytest.approx((100,))


@pytest.mark.parametrize("limit", [1e5, 1e6, 1e9])
def test_a_limit_so_wide_that_hardly_any_rate_is_needed_is_met(limit: float) -> None:
    """1000 / (limit - 1) Mbit/s: so small a share of the widest rate that no tangent is taken there."""
    service, nodes, paths = _shared(1)
    found = goal_rates(service, nodes, paths, RateGoal(np.array([-1.0]), time_limit={"r0": limit}))
    assert found is not None
    assert service.requests(nodes, paths, found.bandwidth)[0].time_ms <= limit * (1 + 1e-10)
    assert found.bandwidth[0] <= 1000 / (limit - 1) + NARROWEST * 100
    assert found.bound >= -1000 / (limit - 1)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1_000_000))
def test_no_general_solver_finds_better_rates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flows = int(rng.integers(1, 4))
    service, nodes, paths = _shared(flows, bandwidth=float(rng.uniform(60, 200)))
    worth = rng.uniform(-2e-3, 1e-2, flows)
    times = {f"r{i}": float(rng.uniform(0, 0.02)) for i in range(flows)}
    limits = {f"r{i}": float(rng.uniform(20, 90)) for i in range(flows) if rng.random() < 0.7}
    goal = RateGoal(worth, float(rng.uniform(0, 0.6)), times, limits)
    found = goal_rates(service, nodes, paths, goal)
    capacity = float(service.problem.cluster.link_capacity[0])

    def cost(rates: np.ndarray) -> float:
        spread = goal.spread_value * float(np.std([rates.sum() / capacity, 0.0]))
        late = sum(times[f"r{i}"] * (1 + 1000 / rate) for i, rate in enumerate(rates))
        return -float(worth @ rates) + spread + late

    low = [1000 / (limits[f"r{i}"] - 1) if f"r{i}" in limits else 1e-3 for i in range(flows)]
    if sum(low) > capacity:
        assert found is None
        return
    assert found is not None
    assert cost(np.array(found.bandwidth)) == pytest.approx(-found.value, abs=1e-9)
    fits = {"type": "ineq", "fun": lambda rates: capacity - rates.sum()}
    begin = np.clip(np.array(low) * 1.05, 1e-2, 100)
    other = minimize(cost, begin, bounds=[(each, 100.0) for each in low], constraints=[fits], method="SLSQP")
    if other.success and other.x.sum() <= capacity * (1 + 1e-9):
        assert -other.fun <= found.value + 1e-6
        assert -other.fun <= found.bound + 1e-7
