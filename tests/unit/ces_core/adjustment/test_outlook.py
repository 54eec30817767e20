"""Adjustments that look ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adjusted_jobs import answer, changed, running_job
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ces_core.adjustment.decision import adjust
from ces_core.adjustment.outlook import Ahead, Outlook, foreseen
from ces_core.adjustment.terms import TaskFacts, Terms
from ces_core.checker import check
from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.model.plan import Plan, PlannedFlow

FACTS = {"detect": TaskFacts(restart_s=5.0)}
CLOSE = 1e-6


def camera(left_ms: float, middle_ms: float, right_ms: float, nodes: str = "left middle right") -> dict[str, Any]:
    """Frames from a cell to a detector on one of three nodes, all alike but for the delay: 40 ms of it are too much."""
    delays = dict(zip(("left", "middle", "right"), (left_ms, middle_ms, right_ms), strict=True))
    links = [("cell", name, ms) for name, ms in delays.items()] + [("left", "middle", 1), ("middle", "right", 1)]
    return {
        "nodes": [{"name": "cell"}, *({"name": name, "cpu": 8, "memory": 8} for name in nodes.split())],
        "links": [
            {"src": src, "dst": dst, "bandwidth": 100, "delay_ms": ms}
            for a, b, ms in links
            for src, dst in ((a, b), (b, a))
            if {a, b} <= {"cell", *nodes.split()}
        ],
        "job": {
            "tasks": [
                {
                    "name": "detect", "cpu": 2, "memory": 1, "rate": 10, "state": 1e6,
                    "work": {"per_request": 40, "threads": 4},
                }
            ],
            "flows": [{"src": "@cell", "dst": "detect", "min": 5, "max": 40, "message": 50_000}],
            "chains": [
                {
                    "name": "loop", "tasks": ["detect"], "flows": [["@cell", "detect"]],
                    "deadline_ms": 60, "hard": True,
                },
                {"name": "comfort", "tasks": ["detect"], "flows": [["@cell", "detect"]], "deadline_ms": 100},
            ],
            "objective": {"time": 1.0},
        },
    }  # fmt: skip


def running(node: str) -> Plan:
    return Plan({"detect": node}, (PlannedFlow("@cell", "detect", 40.0, ("cell", node)),))


def ahead(instance: dict[str, Any], weight: float) -> Outlook:
    return Outlook((Ahead(foreseen(read_instance(instance)), weight),))


NOW, SOON = camera(60, 12, 1), camera(1, 12, 60)


def test_a_place_that_will_do_later_too_is_taken_where_the_best_for_now_will_not() -> None:
    problem = read_instance(NOW)
    blind = adjust(problem, running("left"), FACTS, Terms(60.0))
    seeing = adjust(problem, running("left"), FACTS, Terms(60.0), ahead(SOON, 0.5))
    for decision, node in ((blind, "right"), (seeing, "middle")):
        assert [each.code for each in decision.broken] == ["deadline"]
        assert decision.adjustment is not None
        assert decision.adjustment.plan.assignments == {"detect": node}
        assert decision.certificate.most >= decision.adjustment.worth


def test_what_soon_ends_by_itself_is_waited_for() -> None:
    """Left is where the user will be for ten times as long, and no other place will do then."""
    problem, later = read_instance(NOW), camera(1, 60, 60)
    decision = adjust(problem, running("left"), FACTS, Terms(20.0), ahead(later, 10.0))
    assert [each.code for each in decision.broken] == ["deadline"]
    assert decision.adjustment is None
    assert decision.certificate.proven
    assert adjust(problem, running("left"), FACTS, Terms(20.0), ahead(later, 0.1)).adjustment is not None


def test_a_move_is_made_before_the_deadline_is_missed_if_it_pays() -> None:
    problem = read_instance(camera(12, 12, 60))
    soon = camera(60, 12, 1)
    assert adjust(problem, running("left"), FACTS, Terms(200.0)).adjustment is None
    decision = adjust(problem, running("left"), FACTS, Terms(200.0), ahead(soon, 1.0))
    assert decision.broken == ()
    assert decision.adjustment is not None
    assert decision.adjustment.plan.assignments == {"detect": "middle"}
    assert decision.gain == pytest.approx(decision.adjustment.worth - (decision.worth or 0.0))
    assert adjust(problem, running("left"), FACTS, Terms(200.0, cooling=True), ahead(soon, 1.0)).adjustment is None


def test_paths_and_rates_are_mended_whatever_comes() -> None:
    plan = Plan({"detect": "right"}, (PlannedFlow("@cell", "detect", 1.0, ("cell", "right")),))
    decision = adjust(read_instance(NOW), plan, FACTS, Terms(60.0), ahead(camera(60, 60, 60), 100.0))
    assert decision.adjustment is not None
    assert (decision.adjustment.step, decision.adjustment.moves) == ("rates", ())


def test_what_may_come_is_worth_its_share_and_nothing_where_limits_are_broken() -> None:
    rows = np.array([[1], [2], [3]])
    one, two = ahead(SOON, 1.0).worth(rows), ahead(SOON, 2.0).worth(rows)
    assert two == pytest.approx(2 * one)
    assert one[0] > one[1] > one[2] == 0
    assert Outlook().worth(rows) == pytest.approx([0, 0, 0])


@pytest.mark.parametrize("outlook", [ahead(camera(1, 12, 60, "left middle"), 1.0), ahead(SOON, -1.0)])
def test_an_outlook_on_something_else_is_refused(outlook: Outlook) -> None:
    with pytest.raises(ProblemError, match="outlook"):
        adjust(read_instance(NOW), running("left"), FACTS, Terms(60.0), outlook)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), weight=st.sampled_from([0.2, 1.0, 5.0]), restart_s=st.integers(0, 100))
def test_it_keeps_all_limits_and_a_second_look_changes_nothing(seed: int, weight: float, restart_s: int) -> None:
    """Limits by the independent checker; what may come is another change of the same surroundings."""
    found = running_job(seed, 2 + seed % 2)
    assume(found is not None)
    assert found is not None
    instance = changed(found[0], seed)
    for task in instance["job"]["tasks"]:
        task.pop("state", None)
    problem, outlook = read_instance(instance), ahead(changed(instance, seed + 1), weight)
    facts = {task.name: TaskFacts(restart_s) for task in problem.tasks}
    first = adjust(problem, found[1], facts, Terms(600.0), outlook)
    if first.adjustment is None:
        return
    assert check(instance, answer(problem, first.adjustment.plan)) == []
    assert first.certificate.most >= first.adjustment.worth - CLOSE
    second = adjust(problem, first.adjustment.plan, facts, Terms(600.0), outlook)
    assert second.broken == ()
    assert second.adjustment is None
    assert second.later == pytest.approx(first.adjustment.later)
