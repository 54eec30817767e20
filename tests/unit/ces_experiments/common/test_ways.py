"""What runs of the same seeds in several ways have in common."""

from __future__ import annotations

from typing import Any

import pytest

from ces_experiments.common.ways import by_way, in_both, in_order, moment, pairs

WAYS = ["a", "b", "c"]


def run(seed: int, way: str, **took_s: float | None) -> dict[str, Any]:
    """None: it failed, after a second."""
    jobs = [
        {"name": name, "fate": "failed" if took is None else "succeeded", "took_s": took or 1.0}
        for name, took in took_s.items()
    ]
    return {"seed": seed, "way": way, "jobs": jobs}


RUNS = [run(1, "b", x=2.0), run(1, "a", x=1.0), run(2, "a", x=3.0), run(3, "a"), run(3, "b")]


def test_each_seed_has_all_ways_in_an_order_of_its_own() -> None:
    orders = [tuple(in_order(seed, WAYS)) for seed in range(30)]
    assert all(sorted(order) == WAYS for order in orders)
    assert {order[0] for order in orders} == set(WAYS)
    assert in_order(3, WAYS) == in_order(3, WAYS)


def test_runs_lie_by_way_and_in_pairs_of_the_same_seed() -> None:
    assert {way: [each["seed"] for each in own] for way, own in by_way(RUNS).items()} == {"b": [1, 3], "a": [1, 2, 3]}
    assert [(one["seed"], one["way"], other["way"]) for one, other in pairs(RUNS, "a", "b")] == [
        (1, "a", "b"), (3, "a", "b"),
    ]  # fmt: skip


def test_only_jobs_that_succeeded_in_both_are_compared() -> None:
    one, other = run(1, "a", x=1.0, y=None, z=3.0), run(1, "b", z=5.0, y=2.0, x=None)
    assert in_both(one, other) == [(3.0, 5.0)]


def test_the_moment_of_an_event() -> None:
    assert moment({"time": "2023-11-14T22:13:20.250000+00:00"}) == pytest.approx(1_700_000_000.25)
