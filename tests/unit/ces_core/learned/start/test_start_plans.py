"""Learned first plans, the nodes they are looked for among, and the search that begins with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from core_instances import instances, mild
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ces_core.checker import check
from ces_core.learned import policy
from ces_core.learned.start.greedy import GreedyConstruction
from ces_core.learned.start.regions import REGION_SIZE, REGIONS, rule_of
from ces_core.learned.start.solver import SEARCH_LEARNED
from ces_core.learned.start.weights import SHIPPED, load_weights, shipped
from ces_core.model.errors import PolicyError
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.candidates import ALL, candidates
from ces_core.placement.view import problem_view
from ces_core.search.answer import planned
from ces_core.search.solver import first_plan

odd = instances() | instances().map(mild)
some = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])


@some
@given(instance=odd, skip=st.integers(0, 3), paths=st.sampled_from([None, 2]))
def test_a_quick_plan_breaks_no_rule(instance: dict[str, Any], skip: int, paths: int | None) -> None:
    problem = read_instance(instance, paths=paths)
    if not problem.homes.any(axis=1).all():
        return
    view = problem_view(problem)
    construction = GreedyConstruction.of(problem, view, shipped())
    score = construction.plan(skip)
    if score is not None:
        result = planned("quick", problem, view, construction.state)
        assert check(instance, result.to_dict(paths=problem.path_set), paths=paths) == []
        assert result.metrics is not None
        assert result.metrics.composite == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(("nodes", "tasks"), [(10, None), (120, 8)])
def test_a_search_is_never_worse_than_what_it_begins_with(regime: str, nodes: int, tasks: int | None) -> None:
    for seed in range(4):
        instance = random_instance(regime, seed, nodes=nodes, tasks=tasks)
        problem = read_instance(instance)
        result = SEARCH_LEARNED.solve(problem)
        assert check(instance, result.to_dict()) == []
        view = problem_view(problem, candidates(problem, rule=rule_of(shipped())))
        starts = [first_plan(view)]
        if starts[0] is None or starts[0] < 0.9:
            starts.append(GreedyConstruction.of(problem, view, shipped()).plan(0))
        best = max((score for score in starts if score is not None), default=None)
        if best is not None:
            assert result.metrics is not None
            assert result.metrics.composite >= best - 1e-6


def test_a_policy_is_asked_where_one_is_given_and_there_is_time_and_then_named() -> None:
    pytest.importorskip("onnxruntime")
    problem = read_instance(random_instance("tight", 1))
    assert SEARCH_LEARNED.solve(problem).advice is None
    advised = SEARCH_LEARNED.using(policy.SHIPPED)
    at_leisure = advised.solve(problem)
    assert at_leisure.advice is not None
    assert sorted(at_leisure.advice.probabilities) == sorted(task.name for task in problem.tasks)
    assert all(0.0 <= p <= 1.0 for p in at_leisure.advice.probabilities.values())
    assert advised.solve(problem, time_limit_s=0.0).advice is None


def test_regions_of_a_large_cluster_are_small_and_hold_what_is_named() -> None:
    instance = random_instance("tight", 3, nodes=300, tasks=8)
    instance["job"]["flows"].append({"src": "@n250", "dst": "t0", "min": 1, "max": 5})
    problem = read_instance(instance)
    chosen = candidates(problem, rule=rule_of(shipped()))
    assert 250 in chosen
    assert len(problem.cluster.topology.nodes) > ALL
    assert len(chosen) <= (REGIONS + 1) * REGION_SIZE + len(problem.tasks)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda data: data.pop("dive"), "dive must have"),
        (lambda data: data["centre"].pop("room"), "centre must have"),
        (lambda data: data["member"].update(luck=1.0), "member must have"),
        (lambda data: data.pop("remake"), "remake must have"),
        (lambda data: data["dive"].update(rate=float("nan")), "finite"),
        (lambda data: data["dive"].update(rate="much"), "finite"),
    ],
)
def test_weights_of_another_kind_are_refused(change: Any, complaint: str, tmp_path: Path) -> None:
    data = json.loads(SHIPPED.read_text())
    change(data)
    file = tmp_path / "weights.json"
    file.write_text(json.dumps(data))
    with pytest.raises(PolicyError, match=complaint):
        load_weights(file)


@pytest.mark.parametrize("content", [None, b"", b'{"dive": {', b"\x80", b"[1]"])
def test_what_is_no_file_of_weights_is_refused(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "weights.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(PolicyError, match=r"weights\.json"):
        load_weights(file)
