"""The thesis's own learned schedulers: what they answer, what they refuse, and which policies are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ces_core.baselines.rates import Shortfall, importance_rates
from ces_core.checker import check
from ces_core.learned import policy
from ces_core.learned.schema import schema_hash as other_schema
from ces_core.learned.thesis.policy import (
    BANDWIDTH,
    MAPPING,
    SHIPPED,
    SHIPPED_BALANCE,
    ThesisPolicy,
    load_thesis_policy,
)
from ces_core.learned.thesis.schema import LEVELS, NODES, TASKS, WIDTH, schema_hash
from ces_core.learned.thesis.solvers import CES_PPO_THESIS, PPO_BALANCE, THESIS_LEARNED, by_levels, placer
from ces_core.model.errors import PolicyError
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.network.cache import paths_for
from ces_core.registry import available

pytest.importorskip("onnxruntime")
EITHER = pytest.mark.parametrize("solver", THESIS_LEARNED, ids=lambda solver: solver.name)


def test_the_state_has_the_size_that_the_thesis_gives() -> None:
    assert WIDTH == 3 * NODES + 3 * TASKS + 5


@pytest.mark.parametrize(("file", "preset"), [(SHIPPED, "thesis"), (SHIPPED_BALANCE, "balance")])
def test_shipped_policies_say_how_they_were_trained(file: Path, preset: str) -> None:
    policy = load_thesis_policy(file)
    assert policy.card["schema"] == schema_hash()
    assert (policy.card["version"], policy.card["preset"]) == (policy.version, preset)
    assert {"seed", "commit", "steps", "seconds", "scores"} <= policy.card.keys()


def test_files_that_are_no_such_policy_are_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="No such file"):
        load_thesis_policy(tmp_path / "missing.onnx")
    with pytest.raises(PolicyError, match=f"other features .{other_schema()}."):
        load_thesis_policy(policy.SHIPPED)
    with pytest.raises(PolicyError, match=f"other features .{schema_hash()}."):
        policy.load_policy(SHIPPED)
    altered = tmp_path / "altered.onnx"
    altered.write_bytes(SHIPPED.read_bytes().replace(schema_hash().encode(), b"0" * len(schema_hash())))
    with pytest.raises(PolicyError, match="train it again"):
        load_thesis_policy(altered)
    with pytest.raises(PolicyError, match=r"balance\.onnx: .*does not answer"):
        load_thesis_policy(SHIPPED_BALANCE, MAPPING, BANDWIDTH)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_neither_reach_the_network_nor_leave_it(bad: float) -> None:
    class Broken:
        asked = 0

        def run(self, *_: Any) -> Any:
            self.asked += 1
            return [np.full((1, NODES), bad, dtype=np.float32)]

    session = Broken()
    policy = ThesisPolicy("test", {}, session)
    with pytest.raises(PolicyError, match="finite numbers only"):
        policy.scores(MAPPING, np.full((1, WIDTH), bad, dtype=np.float32))
    assert not session.asked
    with pytest.raises(PolicyError, match="other than finite"):
        policy.scores(MAPPING, np.zeros((1, WIDTH), dtype=np.float32))


def scripted(mapping: list[float], bandwidth: list[float]) -> ThesisPolicy:
    """A policy that always scores alike."""

    class Session:
        def run(self, heads: list[str], inputs: dict[str, Any]) -> Any:
            return [np.array([mapping if head == MAPPING else bandwidth], dtype=np.float32) for head in heads]

    return ThesisPolicy("scripted", {}, Session())


def instance(bandwidth: float) -> dict[str, Any]:
    """Two nodes with room for one task of three each, a third without; one flow."""
    return {
        "nodes": [{"name": name, "cpu": cpu, "memory": cpu} for name, cpu in (("a", 4), ("b", 4), ("c", 1))],
        "links": [{"src": x, "dst": y, "bandwidth": bandwidth} for x, y in ("ab", "ba", "bc", "cb")],
        "job": {
            "tasks": [{"name": name, "cpu": 3, "memory": 3} for name in "xy"],
            "flows": [{"src": "x", "dst": "y", "min": 2, "max": 10}],
        },
    }


def test_the_best_action_that_the_mask_leaves_is_taken() -> None:
    problem = read_instance(instance(7.0))
    policy = scripted([1.0, 2.0, 9.0, *[99.0] * (NODES - 3)], [0.0, 1.0, 2.0, 3.0, 4.0])
    rng = np.random.default_rng(0)
    odds: dict[str, float] = {}
    placed = placer(policy, odds)(problem, rng)
    assert placed.assignment is not None
    assert sorted(placed.assignment) == [0, 1]  # both prefer c, which holds neither, and b holds one
    first = 1 / (1 + np.exp(-1.0))  # of a and b, which score 1 and 2; then b is full
    assert sorted(odds.values()) == pytest.approx([first, 1.0])
    given = by_levels(policy)(problem, placed.assignment, rng)
    assert given.bandwidth == (6.0,)  # of 2, 4, 6, 8 and 10 the largest that 7 carries


@EITHER
def test_where_no_node_is_left_the_task_is_named(solver: Any) -> None:
    crowded = instance(7.0)
    crowded["job"]["tasks"].append({"name": "z", "cpu": 2, "memory": 2})
    reason = solver.solve(read_instance(crowded)).reason
    assert (reason.code, reason.task, reason.proven) == ("packing", "z", False)


def test_where_no_level_is_left_the_flow_is_named() -> None:
    narrow = instance(7.0)
    narrow["job"]["flows"] = [{"src": x, "dst": y, "min": 4, "max": 4} for x, y in (("x", "y"), ("@b", "@a"))]
    problem = read_instance(narrow)
    served = by_levels(scripted([0.0] * NODES, [0.0] * LEVELS))(problem, (1, 0), np.random.default_rng(0))
    assert isinstance(served, Shortfall)
    assert (served.flow, served.found) == (1, pytest.approx(3.0))


@EITHER
def test_clusters_and_jobs_that_the_network_has_no_inputs_for_are_refused(solver: Any) -> None:
    for nodes, tasks in ((NODES + 1, 4), (NODES, TASKS + 1)):
        answer = solver.solve(read_instance(random_instance("thesis", 3, nodes=nodes, tasks=tasks)))
        assert answer.reason is not None
        assert (answer.reason.code, answer.reason.proven) == ("beyond-policy", False)
        assert f"{NODES} nodes and {TASKS} tasks at most" in answer.reason.text()
    assert solver.solve(read_instance(random_instance("thesis", 3, nodes=4, tasks=2))).feasible


@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_plans_break_no_rule_and_rates_are_levels(regime: str) -> None:
    assert {"ces-ppo-thesis", "ppo-balance"} <= available().keys()
    solved = 0
    for seed in range(2_000, 2_015):
        data = random_instance(regime, seed)
        problem = read_instance(data)
        for solver in THESIS_LEARNED:
            answer = solver.solve(problem)
            assert check(data, answer.to_dict()) == []
            if answer.plan is None:
                assert answer.reason is not None
                continue
            solved += 1
            paths = []
            for flow, low, high in zip(answer.plan.flows, problem.flow_min, problem.flow_max, strict=True):
                ends = (problem.cluster.topology.node_index[flow.path[i]] for i in (0, -1))
                paths.append(next(p for p in paths_for(problem).between(*ends) if names(problem, p.nodes) == flow.path))
                level = (flow.bandwidth - low) / (high - low) * (LEVELS - 1)
                if solver is CES_PPO_THESIS:
                    assert level == pytest.approx(round(level), abs=1e-6)
            if solver is PPO_BALANCE:
                rates = [flow.bandwidth for flow in answer.plan.flows]
                np.testing.assert_allclose(rates, importance_rates(problem, paths))
    assert solved > 0


def names(problem: Any, nodes: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(problem.cluster.topology.nodes[n] for n in nodes)
