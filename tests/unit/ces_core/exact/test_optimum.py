"""``exact`` against exhaustive enumeration of plans."""

from __future__ import annotations

from typing import Any

import pytest
from rates_reference import best_composite

from ces_core.checker import check
from ces_core.exact.solver import EXACT
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.plan import Result
from ces_core.model.problem import Basis

CLOSE = 2e-9
"""scipy's linear programs are right to about 1e-9."""


def proven(instance: dict[str, Any], basis: Basis = "system") -> Result:
    """The answer, checked against every rule and every other plan."""
    problem = read_instance(instance, basis=basis)
    result = EXACT.solve(problem)
    best = best_composite(problem)
    assert check(instance, result.to_dict(), basis=basis) == []
    assert result.feasible == (best is not None)
    if result.reason is not None:
        assert result.reason.proven
    if result.metrics is not None and result.bound is not None:
        assert result.metrics.composite == pytest.approx(best, abs=CLOSE)
        assert 0.0 <= result.bound - result.metrics.composite <= 1e-9
    return result


@pytest.mark.parametrize("regime", ["thesis", "tight", "scarce"])
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_of_small_instances(regime: str, seed: int) -> None:
    proven(random_instance(regime, 100 + seed, nodes=3 + seed % 3, tasks=2 + seed % 2, link_probability=0.5))


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_counts_the_job_alone_where_asked(seed: int) -> None:
    proven(random_instance("tight", 200 + seed, nodes=4, tasks=3), "job")


def nodes(count: int, **fields: float) -> list[dict[str, Any]]:
    return [{"name": f"n{i}", "cpu": 10.0, "memory": 8.0, **fields} for i in range(count)]


def links(*pairs: tuple[int, int, float], **fields: Any) -> list[dict[str, Any]]:
    return [
        {"src": f"n{a}", "dst": f"n{b}", "bandwidth": bandwidth, **fields}
        for x, y, bandwidth in pairs
        for a, b in ((x, y), (y, x))
    ]


def tasks(*cpus: float, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": f"t{i}", "cpu": cpu, "memory": cpu / 2, **fields} for i, cpu in enumerate(cpus)]


RING = links((0, 1, 40.0), (1, 2, 30.0), (2, 3, 50.0), (3, 0, 20.0))


def flow(src: str, dst: str, low: float, high: float) -> dict[str, Any]:
    return {"src": src, "dst": dst, "min": low, "max": high}


SPECIAL: dict[str, dict[str, Any]] = {
    "equally short paths": {
        "nodes": nodes(4),
        "links": RING,
        "job": {"tasks": tasks(9, 8, 7), "flows": [flow("t0", "t1", 5, 25), flow("t1", "t2", 5, 25)]},
    },
    "a shared medium": {
        "nodes": nodes(3),
        "links": links((0, 1, 60.0), (1, 2, 60.0), medium="air"),
        "media": {"air": 70.0},
        "job": {"tasks": tasks(9, 8, 6), "flows": [flow("t0", "t1", 10, 50), flow("t1", "t2", 10, 50)]},
    },
    "GPUs": {
        "nodes": [{**node, "gpu": i % 2} for i, node in enumerate(nodes(4))],
        "links": RING,
        "job": {"tasks": [*tasks(4, 4, gpu=1), {"name": "u", "cpu": 3.0}], "flows": [flow("t0", "t1", 5, 30)]},
    },
    "tasks with allowed nodes": {
        "nodes": nodes(4),
        "links": RING,
        "job": {"tasks": tasks(6, 5, allowed=["n0", "n2"]), "flows": [flow("t0", "t1", 5, 30)]},
    },
    "data that lies on a node": {
        "nodes": nodes(4),
        "links": RING,
        "job": {
            "tasks": tasks(9, 8),
            "flows": [flow("@n0", "t0", 5, 45), flow("t1", "@n2", 5, 45), flow("@n1", "@n3", 5, 20)],
        },
    },
    "max = min": {
        "nodes": nodes(4),
        "links": RING,
        "job": {"tasks": tasks(9, 8, 2), "flows": [flow("t0", "t1", 15, 15), flow("t1", "t2", 5, 30)]},
    },
    "no weight on links": {
        "nodes": nodes(4),
        "links": RING,
        "job": {"tasks": tasks(9, 8, 2), "flows": [flow("t0", "t1", 5, 60), flow("t2", "t1", 5, 60)]},
        "weights": [1.0, 0.0, 0.0],
    },
    "weight on links alone": {
        "nodes": nodes(4),
        "links": RING,
        "job": {"tasks": tasks(9, 8, 2), "flows": [flow("t0", "t1", 5, 60), flow("t2", "t1", 5, 60)]},
        "weights": [0.0, 0.0, 4.0],
    },
    "no weights": {
        "nodes": nodes(3),
        "links": links((0, 1, 10.0)),
        "job": {"tasks": tasks(9, 8), "flows": [flow("t0", "t1", 5, 60)]},
        "weights": [0.0, 0.0, 0.0],
    },
    "links without capacity": {
        "nodes": nodes(3),
        "links": [*links((0, 1, 0.0)), *links((1, 2, 30.0))],
        "job": {"tasks": tasks(9, 8), "flows": [flow("t0", "t1", 0, 60)]},
    },
    "tasks that could swap": {
        "nodes": nodes(3, cpu_used=1.0),
        "links": links((0, 1, 40.0), (1, 2, 30.0), (2, 0, 20.0)),
        "job": {"tasks": tasks(9, 4, 4, 4), "flows": [flow(f"t{i}", "t0", 5, 20) for i in (1, 2, 3)]},
    },
    "no flows": {"nodes": nodes(3), "job": {"tasks": tasks(6, 5, 4)}},
    "links full of others' use": {
        "nodes": nodes(3),
        "links": links((0, 1, 40.0), (1, 2, 40.0), bandwidth_used=35.0),
        "job": {"tasks": tasks(9, 8), "flows": [flow("t0", "t1", 2, 60)]},
    },
}


@pytest.mark.parametrize("what", SPECIAL)
def test_the_optimum_with(what: str) -> None:
    assert proven(SPECIAL[what]).feasible


def test_minimums_that_fit_alone_but_not_together_are_proven_infeasible() -> None:
    instance = {
        "nodes": nodes(3),
        "links": links((0, 1, 20.0), (1, 2, 20.0)),
        "job": {
            "tasks": tasks(9, 8, 7),
            "flows": [flow("t0", "t1", 12, 20), flow("t1", "t2", 12, 20), flow("t0", "t2", 12, 20)],
        },
    }
    result = proven(instance)
    assert result.reason is not None
    assert result.reason.code == "bandwidth-together"
    assert result.reason.permanent


def test_tasks_that_fit_alone_but_not_together_are_proven_infeasible() -> None:
    result = proven({"nodes": nodes(3), "job": {"tasks": tasks(6, 6, 6, 6)}})
    assert result.reason is not None
    assert result.reason.code == "packing"
    assert result.reason.permanent


@pytest.mark.parametrize(("kept", "is_proof"), [(32, False), (33, True)])
def test_only_a_complete_set_of_paths_proves_anything(
    kept: int, is_proof: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """33 paths between two nodes, one more than the usual table keeps."""
    monkeypatch.setattr("ces_core.exact.best_first.MAX_TIES", kept)
    middle = 33
    instance = {
        "nodes": [*nodes(2), *({"name": f"s{i}"} for i in range(middle))],
        "links": [
            {"src": a, "dst": b, "bandwidth": 10.0}
            for i in range(middle)
            for a, b in (("n0", f"s{i}"), (f"s{i}", "n1"), ("n1", f"s{i}"), (f"s{i}", "n0"))
        ],
        "job": {"tasks": tasks(9, 8), "flows": [flow("t0", "t1", 5, 10)]},
    }
    result = EXACT.solve(read_instance(instance))
    assert result.metrics is not None
    assert result.bound is not None
    assert (result.bound <= result.metrics.composite + 1e-9) == is_proof


@pytest.mark.parametrize("limit", [0.0, 0.05])
def test_a_bound_holds_however_short_the_time(limit: float) -> None:
    problem = read_instance(random_instance("tight", 9, nodes=10, tasks=8))
    short, whole = EXACT.solve(problem, time_limit_s=limit), EXACT.solve(problem)
    assert whole.metrics is not None
    assert short.metrics is None or short.metrics.composite <= whole.metrics.composite + 1e-9
    assert short.bound is None or short.bound >= whole.metrics.composite - 1e-9
