"""Proposed plans keep to the cluster, and attitudes differ in what they leave behind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ces_core.model.objective import metrics_of
from ces_core.search.answer import planned
from ces_rl.envs.streams.proposals import attitudes, hopeless, propose
from ces_rl.envs.streams.stream import Scenario


def test_loads_and_satisfaction_are_those_of_the_plans() -> None:
    problem = Scenario.draw("scarce", 0.9, 10, 2).kinds[0].problem
    found = propose(problem, attitudes())
    assert found.there.all()
    for number in range(len(found.there)):
        result = planned("plan", problem, found.view, found.states[number])
        assert result.plan is not None
        assert found.satisfaction[number] == pytest.approx(metrics_of(problem, result.plan).bandwidth_satisfaction)
        assert found.node_load[number].sum(axis=1) == pytest.approx(problem.demand.sum(axis=0))
        rates = sum(flow.bandwidth * (len(flow.path) - 1) for flow in result.plan.flows)
        assert found.link_load[number].sum() == pytest.approx(rates)


def test_the_first_two_attitudes_are_the_rules_to_beat() -> None:
    first, second = attitudes()[:2]
    assert first.name == "longrun"
    assert first.value is not None
    assert (second.name, second.value) == ("search", None)


def test_a_job_is_answered_alike_and_not_by_all_in_the_same_way() -> None:
    kinds = Scenario.draw("tight", 0.9, 10, 3).kinds
    plans = [propose(kind.problem, attitudes()) for kind in kinds]
    again = [propose(kind.problem, attitudes()) for kind in kinds]
    for one, other in zip(plans, again, strict=True):
        assert np.array_equal(one.node_load, other.node_load)
    assert any(not np.array_equal(one.node_load[0], one.node_load[1]) for one in plans)


def test_a_job_is_hopeless_where_no_node_has_anything_left() -> None:
    scenario = Scenario.draw("tight", 0.9, 10, 3)
    full = scenario.cluster.with_used(scenario.cluster.node_capacity, scenario.cluster.link_used)
    problem = replace(scenario.kinds[0].problem, cluster=full)
    assert hopeless(problem)
    assert not hopeless(scenario.kinds[0].problem)
