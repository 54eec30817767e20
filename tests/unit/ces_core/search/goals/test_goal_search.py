"""``search`` on jobs with goals, beside ``exact``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from goal_instances import goal_instance, pipeline

from ces_core.checker import check
from ces_core.compiled.jit import COMPILED
from ces_core.exact.solver import EXACT
from ces_core.model.instance import read_instance
from ces_core.model.plan import Result
from ces_core.model.reason import Reason
from ces_core.registry import SOLVERS
from ces_core.search.solver import SEARCH

CLOSE = 1e-6
"""The exact solver's own tolerance and the program's, together."""
EACH = 20
"""Instances of a test; two hundred in all."""


@dataclass(frozen=True)
class Pair:
    """What both solvers say of one instance."""

    mine: Result
    best: Result


def asked(instance: dict[str, Any], **how: Any) -> Pair:
    """Both answers; that of ``search`` is checked, not above a proven optimum, and refuses nothing falsely."""
    problem = read_instance(instance, **how)
    mine, best = SEARCH.solve(problem, seed=1), EXACT.solve(problem)
    assert check(instance, mine.to_dict(paths=problem.path_set), **how) == []
    if mine.metrics is not None:
        assert best.metrics is not None
        assert mine.metrics.objective <= best.metrics.objective + CLOSE
    if mine.reason is not None and mine.reason.proven:
        assert best.reason is not None
    return Pair(mine, best)


@pytest.mark.parametrize("part", range(8))
def test_small_instances_are_placed_near_the_optimum(part: int) -> None:
    gaps = []
    for seed in range(1000 + part * EACH, 1000 + (part + 1) * EACH):
        pair = asked(goal_instance(seed, tasks=2 if seed % 2 else None))
        if pair.best.metrics is not None:
            assert pair.mine.metrics is not None, seed
            gaps.append(pair.best.metrics.objective - pair.mine.metrics.objective)
    assert len(gaps) > EACH / 2
    assert sum(gaps) / len(gaps) < (1e-4 if COMPILED else 2e-3)


@pytest.mark.parametrize("part", range(2))
def test_strict_goals_are_kept_or_refused(part: int) -> None:
    refused = 0
    for seed in range(2000 + part * EACH, 2000 + (part + 1) * EACH):
        pair = asked(goal_instance(seed, strict=True, tasks=2))
        if pair.best.metrics is not None:
            assert pair.mine.metrics is not None, seed
        refused += pair.mine.reason is not None
    assert 0 < refused < EACH


def test_paths_of_least_delay_are_taken() -> None:
    for seed in range(200, 204):
        asked(goal_instance(seed, nodes=3, tasks=2), paths=2, path_metric="delay")


def reason_of(instance: dict[str, Any]) -> Reason:
    found = SEARCH.solve(read_instance(instance)).reason
    assert found is not None
    return found


LOOP = pipeline()["job"]["chains"][0]


@pytest.mark.parametrize(
    ("job", "text"),
    [
        ({}, "loop: 61 ms of 50 ms, 22 ms of it roof1 -> gate1; 11 ms are missing"),
        (
            {"chains": [], "least_reliability": 0.96},
            "nodes and links work together with probability 0.95 at best; 0.96 is wanted",
        ),
    ],
)
def test_a_goal_out_of_reach_is_named_as_exact_names_it(job: dict[str, Any], text: str) -> None:
    reason = reason_of(pipeline(**job))
    assert (reason.text(), reason.proven, reason.permanent) == (text, True, True)
    told = EXACT.solve(read_instance(pipeline(**job))).reason
    assert told is not None
    assert told.text() == text


def test_use_by_others_is_no_lasting_reason() -> None:
    """With 10 of 100 Mbit/s left, the message alone takes 40 ms."""
    instance = pipeline(chains=[LOOP | {"deadline_ms": 61}])
    for link in instance["links"]:
        link["bandwidth_used"] = 90
    reason = reason_of(instance)
    assert (reason.code, reason.proven, reason.permanent) == ("deadline", True, False)


def test_goals_that_exclude_each_other_are_not_proven_to() -> None:
    reason = reason_of(pipeline(chains=[LOOP | {"deadline_ms": 61}], least_reliability=0.9))
    assert reason.code in ("deadline", "goals-together")
    assert not reason.proven
    assert "not proven" in reason.text()


@pytest.mark.parametrize(
    ("change", "code"),
    [({"rate": 45}, "task-load"), ({"rate": 30, "longest_ms": 40}, "task-time"), ({"cpu": 9}, "cpu-per-node")],
)
def test_a_task_that_fits_nowhere_is_named(change: dict[str, Any], code: str) -> None:
    instance = pipeline(chains=[])
    instance["job"]["tasks"][1] |= change
    reason = reason_of(instance)
    assert (reason.code, reason.proven) == (code, True)


def test_a_group_that_fits_on_no_node_is_named() -> None:
    instance = pipeline(chains=[])
    for task in instance["job"]["tasks"]:
        task |= {"group": "pair", "cpu": 3}
    reason = reason_of(instance)
    assert (reason.code, reason.proven) == ("placed-together", True)


def test_a_held_task_stays_unless_moving_is_worth_it() -> None:
    chains = [LOOP | {"hard": False, "deadline_ms": 200}]

    def node(cost: float | None) -> str:
        held = {"task": "t1", "node": "roof1"} | ({} if cost is None else {"cost": cost})
        plan = SEARCH.solve(read_instance(pipeline(chains=chains, objective={"time": 1.0}, held=[held]))).plan
        assert plan is not None
        return plan.assignments["t1"]

    # At the gate 1 - 61/200 = 0.695, on the roof 1 - 99/200 = 0.505.
    assert (node(0.189), node(0.191), node(None)) == ("gate1", "roof1", "roof1")


def test_crowded_links_leave_room_for_every_minimum() -> None:
    """Each flow alone would take the whole link."""
    instance = pipeline(chains=[], objective={"bandwidth": 1.0})
    for name in ("t2", "t3"):
        instance["job"]["tasks"].append({"name": name, "cpu": 1, "memory": 1, "allowed": ["roof1"]})
    instance["job"]["tasks"][1] |= {"allowed": ["gate1"], "group": "alone"}
    instance["job"]["flows"] = [{"src": f"t{i}", "dst": "t1", "min": 30, "max": 100} for i in (0, 2, 3)]
    pair = asked(instance)
    assert pair.mine.metrics is not None
    assert pair.best.metrics is not None
    assert pair.mine.metrics.objective == pytest.approx(pair.best.metrics.objective, abs=CLOSE)


@pytest.mark.parametrize("name", ["search", "default", "search-longrun"])
def test_the_same_seed_gives_the_same_answer_without_a_limit(name: str) -> None:
    instance = goal_instance(4)
    answers = [SOLVERS[name].solve(read_instance(instance), seed=3).to_dict() for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["feasible"]


def test_no_time_is_enough_for_a_first_plan() -> None:
    result = SEARCH.solve(read_instance(goal_instance(3)), time_limit_s=0.0)
    assert result.metrics is not None
    assert result.bound is None
