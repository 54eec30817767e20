"""The constraint that `search` blames for an infeasible job."""

from typing import Any

import pytest
from core_instances import instances, mild
from hypothesis import given, settings

from ces_core.model.instance import read_instance
from ces_core.model.parts import Flow, Link, Node, Task
from ces_core.model.problem import Cluster, Problem
from ces_core.search import diagnosis, solver


def test_little_time_puts_the_blame_on_no_other_constraint(monkeypatch: pytest.MonkeyPatch) -> None:
    """One task per node, so two flows share a link that cannot carry both minimums."""
    monkeypatch.setattr(solver, "DIAGNOSIS_S", 0.0)
    nodes = [Node(name, cpu=2.0, memory=2.0) for name in "abc"]
    cluster = Cluster.make(nodes, [Link(a, b, 4.0) for a in "abc" for b in "abc" if a != b])
    ends = [("@a", "@b"), *((x, y) for x in "xyz" for y in "xyz" if x != y)]
    flows = [Flow(src, dst, 3.0, 5.0) for src, dst in ends]
    result = solver.SEARCH.solve(Problem.make(cluster, [Task(name, cpu=1.5) for name in "xyz"], flows))
    assert result.reason is not None
    assert (result.reason.code, result.reason.resource) == ("bandwidth-together", "bandwidth")


@settings(max_examples=200, deadline=None)
@given(instance=instances() | instances().map(mild))
def test_the_quick_feasibility_test_hides_no_obstacle(instance: dict[str, Any]) -> None:
    problem = read_instance(instance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(diagnosis, "unhindered", lambda *_: False)
        looked_closer = diagnosis.obstacle(problem)
    assert diagnosis.obstacle(problem) == looked_closer
