"""Adjustments of running jobs, against every plan."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from adjusted_jobs import EveryPlan, answer, changed, running_job
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ces_core.adjustment.adjustment import Decision
from ces_core.adjustment.decision import adjust
from ces_core.adjustment.terms import TaskFacts, Terms
from ces_core.checker import check
from ces_core.exact.solver import EXACT
from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.model.plan import Plan, PlannedFlow

CLOSE = 1e-6
LEAST_GAIN = 1e-3


def stateless(instance: dict[str, Any]) -> dict[str, Any]:
    for task in instance["job"]["tasks"]:
        task.pop("state", None)
    return instance


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    moves=st.integers(0, 3),
    restart_s=st.integers(0, 300),
    budget=st.sampled_from([math.inf, 100.0]),
)
def test_the_certificate_is_right_and_nothing_better_is_left(
    seed: int, moves: int, restart_s: int, budget: float
) -> None:
    found = running_job(seed, 2 + seed % 2)
    assume(found is not None)
    assert found is not None
    instance, plan = stateless(changed(found[0], seed)), found[1]
    facts = {task["name"]: TaskFacts(restart_s) for task in instance["job"]["tasks"]}
    terms = Terms(3600.0, LEAST_GAIN, budget, most_moves=moves)
    problem = read_instance(instance)
    decision = adjust(problem, plan, facts, terms)
    best = EveryPlan(instance, plan, facts, 3600.0).best(moves, budget)
    assert decision.certificate.proven
    assert decision.certificate.most >= best - CLOSE
    if decision.adjustment is None:
        assert best == -math.inf if decision.now is None else best <= decision.now + LEAST_GAIN + CLOSE
        return
    assert len(decision.adjustment.moves) <= moves
    assert decision.adjustment.disturbance <= budget
    assert check(instance, answer(problem, decision.adjustment.plan)) == []
    assert decision.adjustment.worth <= best + CLOSE
    assert decision.adjustment.worth >= best - LEAST_GAIN - CLOSE
    if decision.gain is not None:
        assert decision.gain >= LEAST_GAIN


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), restart_s=st.integers(0, 300))
def test_a_second_look_right_after_changes_nothing(seed: int, restart_s: int) -> None:
    """Without any cooldown: all plans are within three moves here."""
    found = running_job(seed, 2 + seed % 2)
    assume(found is not None)
    assert found is not None
    instance = stateless(changed(found[0], seed))
    problem = read_instance(instance)
    facts = {task.name: TaskFacts(restart_s) for task in problem.tasks}
    first = adjust(problem, found[1], facts, Terms(3600.0))
    if first.adjustment is not None:
        second = adjust(problem, first.adjustment.plan, facts, Terms(3600.0))
        assert second.broken == ()
        assert second.adjustment is None


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), most_moves=st.integers(1, 2))
def test_state_and_few_moves_lead_nowhere_twice(seed: int, most_moves: int) -> None:
    """Each adjustment raises the objective by the least gain, or ends what is broken: so they come to an end."""
    found = running_job(seed, 2 + seed % 2)
    assume(found is not None)
    assert found is not None
    problem, plan = read_instance(changed(found[0], seed)), found[1]
    terms = Terms(3600.0, most_moves=most_moves)
    objectives: list[float] = []
    for _ in range(int(2 / LEAST_GAIN)):
        decision = adjust(problem, plan, {}, terms)
        if decision.adjustment is None:
            break
        if objectives:
            assert decision.broken == ()
            assert decision.adjustment.objective >= objectives[-1] + terms.least_gain - CLOSE
        objectives.append(decision.adjustment.objective)
        plan = decision.adjustment.plan
    else:
        pytest.fail("there was always one more")


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_best_plan_of_unchanged_surroundings_stays(seed: int) -> None:
    found = running_job(seed, 2 + seed % 2)
    assume(found is not None)
    assert found is not None
    problem = read_instance(found[0])
    decision = adjust(problem, found[1], {}, Terms(1e9))
    assert decision.broken == ()
    assert decision.adjustment is None
    assert decision.certificate.proven
    optimum = EXACT.solve(problem).metrics
    assert optimum is not None
    assert decision.now == pytest.approx(optimum.objective, abs=1e-9)


def _camera(**changes: Any) -> dict[str, Any]:
    """Frames from a camera at ``cell``; a detector runs near or far, and ``near`` has the shorter way."""
    instance = {
        "nodes": [
            {"name": "cell"},
            {"name": "near", "cpu": 8, "memory": 8},
            {"name": "far", "cpu": 8, "memory": 8},
        ],
        "links": [
            {"src": src, "dst": dst, "bandwidth": 100, "delay_ms": delay}
            for a, b, delay in (("cell", "near", 2), ("cell", "far", 9), ("near", "far", 20))
            for src, dst in ((a, b), (b, a))
        ],
        "job": {
            "tasks": [
                {
                    "name": "detect", "cpu": 2, "memory": 1, "state": 2.5e6, "rate": 10,
                    "work": {"per_request": 40, "threads": 4},
                }
            ],
            "flows": [{"src": "@cell", "dst": "detect", "min": 5, "max": 40, "message": 50_000}],
            "chains": [
                {
                    "name": "loop", "tasks": ["detect"], "flows": [["@cell", "detect"]],
                    "deadline_ms": 60, "hard": True,
                }
            ],
            "objective": {"bandwidth": 1.0},
        },
    }  # fmt: skip
    return instance | changes


def _running(node: str, rate: float = 40.0) -> Plan:
    path = ("cell", node)
    return Plan({"detect": node}, (PlannedFlow("@cell", "detect", rate, path),))


def _decide(instance: dict[str, Any], plan: Plan, fact: TaskFacts | None = None, **terms: Any) -> Decision:
    facts = {"detect": fact or TaskFacts(restart_s=5.0)}
    return adjust(read_instance(instance), plan, facts, Terms(**{"remaining_s": 3600.0} | terms))


def test_rates_are_raised_before_anything_else() -> None:
    decision = _decide(_camera(), _running("near", 20.0))
    assert decision.adjustment is not None
    assert (decision.adjustment.step, decision.adjustment.moves) == ("rates", ())
    assert decision.gain == pytest.approx(20 / 35)


def test_a_move_that_ends_a_missed_deadline_costs_what_it_says() -> None:
    """25 ms of work at a load of 0.2, 10 ms of message, 30 ms of delay; 2.5 MB over the 80 Mbit/s that are left of the
    way back to the cell, and on to the other node."""
    instance = _camera()
    for link in instance["links"]:
        if "near" in (link["src"], link["dst"]):
            link["delay_ms"] = 30
    decision = _decide(instance, _running("near", 20.0))
    assert [each.code for each in decision.broken] == ["deadline"]
    assert decision.adjustment is not None
    (move,) = decision.adjustment.moves
    assert (move.src, move.dst) == ("near", "far")
    assert move.seconds == pytest.approx(5 + 2e7 / 100e6)  # straight from near to far, where nothing runs
    assert move.requests == pytest.approx(10 * move.seconds)
    assert decision.gain is None
    assert decision.certificate.proven


def test_a_gain_must_pay_for_its_move_in_the_time_that_is_left() -> None:
    """Both nodes are in time; at the far one the flow gets 40 and not 20 Mbit/s: 20/35 of the objective."""
    instance = _camera()
    for link in instance["links"]:
        if {link["src"], link["dst"]} == {"cell", "near"}:
            link["bandwidth"] = 20
    plan = _running("near", 20.0)
    move_s = 5 + 2e7 / 100e6
    pays = move_s / (20 / 35)
    assert _decide(instance, plan, remaining_s=pays * 0.99).adjustment is None
    decision = _decide(instance, plan, remaining_s=pays * 1.1)
    assert decision.adjustment is not None
    assert decision.adjustment.step == "moves"
    assert _decide(instance, plan, remaining_s=pays * 1.1, budget=10 * move_s - 1).adjustment is None
    assert (
        _decide(instance, plan, remaining_s=pays * 1.1, budget=20 * move_s, reserve=10 * move_s + 1).adjustment is None
    )
    assert _decide(instance, plan, remaining_s=pays * 1.1, cooling=True).adjustment is None


def test_more_cpu_ends_an_overload_in_place() -> None:
    instance = _camera()
    instance["job"]["tasks"][0]["rate"] = 45  # 0.9 of two cores
    decision = _decide(instance, _running("near"), TaskFacts(5.0, cpu=(1.0, 4.0)))
    assert [each.code for each in decision.broken] == ["load", "deadline"]
    assert decision.adjustment is not None
    assert (decision.adjustment.step, decision.adjustment.moves) == ("cpu", ())
    assert decision.adjustment.cpu["detect"] >= 2.25
    after = copy.deepcopy(instance)
    after["job"]["tasks"][0]["cpu"] = decision.adjustment.cpu["detect"]
    assert check(after, answer(read_instance(after), decision.adjustment.plan)) == []


def test_a_flow_whose_user_is_elsewhere_gets_another_path_without_a_move() -> None:
    instance = _camera()
    instance["nodes"].append({"name": "cell2"})
    instance["links"] += [
        {"src": "cell2", "dst": "near", "bandwidth": 100, "delay_ms": 3},
        {"src": "near", "dst": "cell2", "bandwidth": 100, "delay_ms": 3},
    ]
    flow = instance["job"]["flows"][0]
    flow["src"], instance["job"]["chains"][0]["flows"] = "@cell2", [["@cell2", "detect"]]
    decision = _decide(instance, _running("near"))
    assert [each.code for each in decision.broken] == ["path"]
    assert decision.adjustment is not None
    assert (decision.adjustment.step, decision.adjustment.moves) == ("paths", ())
    assert decision.adjustment.plan.flows[0].path == ("cell2", "near")


def test_what_cannot_be_mended_is_said_with_a_proof() -> None:
    instance = _camera()
    instance["job"]["chains"][0]["deadline_ms"] = 20
    decision = _decide(instance, _running("near"))
    assert decision.adjustment is None
    assert decision.certificate.text(decision.now) == "No adjustment with at most 3 moves ends what is broken."


def test_state_that_no_link_can_carry_stays() -> None:
    instance = _camera()
    for link in instance["links"]:
        if "near" in (link["src"], link["dst"]):
            link["delay_ms"] = 30
        if link["src"] == "near":
            link["bandwidth_used"] = 100
    assert _decide(instance, _running("near", 20.0)).adjustment is None


@pytest.mark.parametrize(
    ("facts", "terms", "field"),
    [
        ({"other": TaskFacts()}, {}, "adjust.tasks"),
        ({"detect": TaskFacts(-1.0)}, {}, "adjust.tasks.detect.restart_s"),
        ({"detect": TaskFacts(requests=0.0)}, {}, "adjust.tasks.detect.requests"),
        ({"detect": TaskFacts(cpu=(3.0, 4.0))}, {}, "adjust.tasks.detect.cpu"),
        ({}, {"remaining_s": 0.0}, "adjust.remaining_s"),
        ({}, {"least_gain": 0.0}, "adjust.least_gain"),
        ({}, {"budget": -1.0}, "adjust.budget"),
        ({}, {"reserve": -1.0}, "adjust.reserve"),
        ({}, {"most_moves": 4}, "adjust.most_moves"),
    ],
)
def test_bad_input_is_named(facts: dict[str, TaskFacts], terms: dict[str, Any], field: str) -> None:
    with pytest.raises(ProblemError) as raised:
        adjust(read_instance(_camera()), _running("near"), facts, Terms(**{"remaining_s": 60.0} | terms))
    assert raised.value.field == field


def test_a_plan_of_another_cluster_is_refused() -> None:
    with pytest.raises(ProblemError, match="is on gone, which is not there"):
        _decide(_camera(), _running("gone"))


def test_a_job_without_goals_is_refused() -> None:
    instance = _camera()
    job = instance["job"]
    del job["chains"], job["objective"], job["tasks"][0]["rate"]
    with pytest.raises(ProblemError, match="no goals"):
        _decide(instance, _running("near"))
