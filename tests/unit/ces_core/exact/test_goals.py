"""``exact`` on jobs with goals, against every plan."""

from __future__ import annotations

from typing import Any

import pytest
from goal_instances import goal_instance, pipeline
from goal_reference import Reference

from ces_core.checker import check
from ces_core.exact.solver import EXACT
from ces_core.model.errors import ProblemError
from ces_core.model.instance import read_instance
from ces_core.model.plan import Result

CLOSE = 1e-6


def proven(instance: dict[str, Any], **how: Any) -> Result:
    """The answer, checked against every rule and every other plan."""
    problem = read_instance(instance, **how)
    result = EXACT.solve(problem)
    reference = Reference(instance, problem)
    best = reference.best()
    assert check(instance, result.to_dict(paths=problem.path_set), **how) == []
    assert result.feasible == (best is not None)
    if result.metrics is not None and result.bound is not None:
        assert result.metrics.objective == pytest.approx(best, abs=CLOSE)
        assert result.optimal
    if result.reason is not None:
        assert result.reason.proven
        _true(result, reference)
    return result


def _true(result: Result, reference: Reference) -> None:
    """What a refusal says is so."""
    reason = result.reason
    assert reason is not None
    if reason.code == "deadline" and "if the other goals" not in (reason.where or ""):
        name = (reason.where or "").split(":")[0]
        # Flows that share links may be slower together than the reference's bound, which takes each alone.
        assert reason.needed is not None
        assert reason.needed >= reference.least_time(name) * (1 - 1e-6)
        assert reason.missing is not None
        assert reason.missing > 0
    if reason.code == "reliability":
        assert reason.available == pytest.approx(reference.most_reliable(), abs=1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_the_optimum_of_small_instances(seed: int) -> None:
    proven(goal_instance(seed))


@pytest.mark.parametrize("seed", range(100, 112))
def test_strict_goals_are_met_or_proven_impossible(seed: int) -> None:
    proven(goal_instance(seed, strict=True))


def test_a_deadline_that_alone_decides_a_rate_is_met() -> None:
    """The rate costs more than it brings, so that the deadline is just met: nearer than the program's own tolerance."""
    proven(goal_instance(5701, nodes=3, tasks=3))


@pytest.mark.parametrize("seed", range(200, 206))
def test_the_optimum_over_paths_of_least_delay(seed: int) -> None:
    proven(goal_instance(seed, nodes=3, tasks=2), paths=2, path_metric="delay")


def test_a_deadline_out_of_reach_is_named_with_the_missing_ms() -> None:
    """19 + 40 / 2 + 12 + 400,000 bit at 40 Mbit/s: 61 ms; on the roof alone 19 + 80."""
    reason = proven(pipeline()).reason
    assert reason is not None
    assert (reason.code, reason.proven, reason.permanent) == ("deadline", True, True)
    assert reason.missing == pytest.approx(11.0)
    assert reason.text() == "loop: 61 ms of 50 ms, 22 ms of it roof1 -> gate1; 11 ms are missing"


def test_a_deadline_in_reach_is_met() -> None:
    chains = pipeline()["job"]["chains"]
    result = proven(pipeline(chains=[chains[0] | {"deadline_ms": 61}]))
    assert result.plan is not None
    assert result.plan.assignments["t1"] == "gate1"
    assert result.metrics is not None
    assert result.metrics.service is not None
    assert result.metrics.service.requests[0].time_ms <= 61 * (1 + 1e-9)


def test_a_reliability_out_of_reach_is_named_with_the_best_there_is() -> None:
    reason = proven(pipeline(chains=[], least_reliability=0.96)).reason
    assert reason is not None
    assert (reason.code, reason.proven, reason.permanent) == ("reliability", True, True)
    assert reason.text() == "nodes and links work together with probability 0.95 at best; 0.96 is wanted"


def test_goals_that_exclude_each_other_are_named_together() -> None:
    """In time only at the gate, reliable enough only on the roof."""
    chains = [pipeline()["job"]["chains"][0] | {"deadline_ms": 61}]
    reason = proven(pipeline(chains=chains, least_reliability=0.9)).reason
    assert reason is not None
    assert reason.code == "deadline"
    assert reason.text() == (
        "loop: 99 ms of 61 ms, 80 ms of it t1 on roof1, if the other goals are met; 38 ms are missing"
    )


@pytest.mark.parametrize(
    ("task", "code", "text"),
    [
        ({"rate": 45}, "task-load", "task t1 would be loaded to 0.9 even on gate1; 0.8 is the most"),
        ({"rate": 30, "longest_ms": 40}, "task-time", "task t1 takes 50 ms even on gate1; 40 ms is its limit"),
    ],
)
def test_a_task_that_is_too_slow_everywhere_is_named(task: dict[str, Any], code: str, text: str) -> None:
    instance = pipeline(chains=[])
    instance["job"]["tasks"][1] |= task
    reason = proven(instance).reason
    assert reason is not None
    assert (reason.code, reason.text(), reason.permanent) == (code, text, True)


def test_a_group_that_fits_on_no_node_is_named() -> None:
    instance = pipeline(chains=[])
    for task in instance["job"]["tasks"]:
        task |= {"group": "pair", "cpu": 3}
    reason = proven(instance).reason
    assert reason is not None
    assert (reason.code, reason.proven) == ("placed-together", True)


def test_what_stands_in_the_way_without_goals_keeps_its_name() -> None:
    instance = pipeline()
    instance["job"]["tasks"][0]["cpu"] = 5
    reason = proven(instance).reason
    assert reason is not None
    assert reason.code == "cpu-per-node"


def test_a_held_task_stays_unless_moving_is_worth_it() -> None:
    chains = [pipeline()["job"]["chains"][0] | {"hard": False, "deadline_ms": 200}]
    goals = {"chains": chains, "objective": {"time": 1.0}}

    def node(cost: float | None) -> str:
        held = {"task": "t1", "node": "roof1"} | ({} if cost is None else {"cost": cost})
        result = proven(pipeline(**goals, held=[held]))
        assert result.plan is not None
        return result.plan.assignments["t1"]

    # At the gate 1 - 61/200 = 0.695, on the roof 1 - 99/200 = 0.505.
    assert (node(0.189), node(0.191), node(None)) == ("gate1", "roof1", "roof1")


def test_energy_pulls_tasks_together_and_balance_apart() -> None:
    instance = pipeline(chains=[], flows=[])
    for node in instance["nodes"]:
        node |= {"idle_w": 10, "peak_w": 20, "sleeping": True}
        node.pop("speed")
    instance["job"]["tasks"][0].pop("allowed")

    def nodes(**weights: float) -> int:
        instance["job"]["objective"] = weights
        result = proven(instance)
        assert result.plan is not None
        return len(set(result.plan.assignments.values()))

    assert nodes(balance=0.1, energy=0.9) == 1
    assert nodes(balance=1.0) == 2


def test_the_nearest_source_is_chosen() -> None:
    instance = pipeline(
        flows=[{"src": "@roof1", "dst": "t1", "min": 1, "max": 2, "sources": ["roof1", "gate1"]}],
        chains=[{"name": "fetch", "tasks": ["t1"], "flows": [["@roof1", "t1"]], "deadline_ms": 25, "hard": True}],
    )
    result = proven(instance)
    assert result.plan is not None
    assert (result.plan.assignments["t1"], result.plan.flows[0].path) == ("gate1", ("gate1",))


def test_without_time_the_bound_still_holds() -> None:
    instance = goal_instance(7, nodes=4, tasks=3)
    full = EXACT.solve(read_instance(instance))
    cut = EXACT.solve(read_instance(instance), time_limit_s=0.0)
    assert full.metrics is not None
    if cut.bound is not None and cut.metrics is not None:
        assert cut.bound >= full.metrics.objective - 1e-9
    if cut.reason is not None:
        assert not cut.reason.proven


def test_what_is_too_large_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ces_core.exact.goals.LARGEST", 3)
    with pytest.raises(ProblemError, match="name the nodes that its tasks may use"):
        EXACT.solve(read_instance(goal_instance(1)))
