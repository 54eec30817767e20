"""The policy that ships with the core: what it answers, and what is refused in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policy_table import uniform_scores

from ces_core.checker import check
from ces_core.learned.decoder import Stuck, greedy
from ces_core.learned.features import CONTEXT_WIDTH, NODE_WIDTH
from ces_core.learned.policy import LARGEST, SCHEMA_KEY, SHIPPED, VERSION_KEY, Policy, load_policy
from ces_core.learned.policy_solvers import IMITATION, IMITATION_64, shipped
from ces_core.learned.schema import schema_hash
from ces_core.learned.start.solver import SEARCH_LEARNED
from ces_core.learned.thesis import policy
from ces_core.model.errors import PolicyError
from ces_core.model.generate import REGIMES, random_instance
from ces_core.model.instance import read_instance
from ces_core.placement.view import problem_view
from ces_core.registry import DEFAULT, available, own
from ces_core.search.solver import SEARCH
from ces_core.solver import Learned


def inputs(batch: int = 2, nodes: int = 5) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    mask = np.ones((batch, nodes), dtype=np.bool_)
    mask[:, 1] = False
    seen = rng.normal(size=(batch, nodes, NODE_WIDTH)), rng.normal(size=(batch, CONTEXT_WIDTH))
    return seen[0].astype(np.float32), seen[1].astype(np.float32), mask


def test_the_shipped_policy_is_of_this_schema_and_says_how_it_was_trained() -> None:
    policy = shipped()
    assert policy.card["schema"] == schema_hash()
    assert policy.card["version"] == policy.version
    assert {"preset", "seed", "commit", "steps", "seconds", "scores"} <= policy.card.keys()


def test_a_forbidden_node_scores_minus_infinity_and_a_batch_is_its_rows() -> None:
    nodes, context, mask = inputs()
    together = shipped().scores(nodes, context, mask)
    assert np.isneginf(together[:, 1]).all()
    assert np.isfinite(np.delete(together, 1, axis=1)).all()
    for i in range(len(nodes)):
        alone = shipped().scores(nodes[i : i + 1], context[i : i + 1], mask[i : i + 1])
        np.testing.assert_allclose(alone[0], together[i], atol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_never_reach_the_network(bad: float) -> None:
    class Untouched:
        def run(self, *_: Any) -> Any:
            raise AssertionError("the network was asked")

    policy = Policy("test", {}, Untouched())
    for which in (0, 1):
        asked = list(inputs())
        asked[which][0, 0] = bad
        with pytest.raises(PolicyError, match="finite"):
            policy.scores(*asked)


def test_an_answer_that_is_not_finite_is_refused() -> None:
    class Broken:
        def run(self, *_: Any) -> Any:
            return [np.full((2, 5), np.nan, dtype=np.float32)]

    with pytest.raises(PolicyError, match="not finite"):
        Policy("test", {}, Broken()).scores(*inputs())


def altered(tmp_path: Path, data: bytes) -> Path:
    file = tmp_path / "policy.onnx"
    file.write_bytes(data)
    return file


def test_files_that_are_no_policy_are_refused_with_the_reason(tmp_path: Path) -> None:
    good = SHIPPED.read_bytes()
    with pytest.raises(PolicyError, match="No such file"):
        load_policy(tmp_path / "missing.onnx")
    for broken in (b"", good[: len(good) // 2], b"something else"):
        with pytest.raises(PolicyError, match=r"no ONNX file|no policy of CES"):
            load_policy(altered(tmp_path, broken))
    with pytest.raises(PolicyError, match="no policy of CES"):
        load_policy(altered(tmp_path, good.replace(SCHEMA_KEY.encode(), b"xes.schema")))
    with pytest.raises(PolicyError, match="other features"):
        load_policy(altered(tmp_path, good.replace(schema_hash().encode(), b"0" * len(schema_hash()))))
    with pytest.raises(PolicyError, match="no version"):
        load_policy(altered(tmp_path, good.replace(VERSION_KEY.encode(), b"xes.version")))
    with pytest.raises(PolicyError, match="is no file"):
        load_policy(tmp_path)
    with (tmp_path / "large.onnx").open("wb") as large:
        large.truncate(LARGEST + 1)
    with pytest.raises(PolicyError, match="at most"):
        load_policy(tmp_path / "large.onnx")


def test_an_answer_of_another_shape_is_refused() -> None:
    class Short:
        def run(self, *_: Any) -> Any:
            return [np.zeros((2, 1), dtype=np.float32)]

    with pytest.raises(PolicyError, match="shape"):
        Policy("test", {}, Short()).scores(*inputs())


@pytest.mark.parametrize("name", sorted(name for name, each in available().items() if isinstance(each, Learned)))
def test_a_learned_solver_uses_the_policy_that_it_is_given_and_says_so(name: str, tmp_path: Path) -> None:
    solver: Any = available()[name]
    usual = {"ces-ppo-thesis": policy.SHIPPED, "ppo-balance": policy.SHIPPED_BALANCE}.get(name, SHIPPED)
    version = solver.using(usual).policy.version
    given = tmp_path / "given.onnx"
    given.write_bytes(usual.read_bytes().replace(version.encode(), b"x" * len(version)))
    problem = read_instance(random_instance("thesis", 7))
    for expected, asked in ((version, solver.using(usual)), ("x" * len(version), solver.using(given))):
        result = asked.solve(problem)
        assert result.plan is not None
        assert result.advice is not None
        assert result.advice.version == expected
        assert result.advice.probabilities.keys() == result.plan.assignments.keys()
        assert all(0 <= probability <= 1 for probability in result.advice.probabilities.values())
        assert min(result.advice.probabilities.values()) < 1
    with pytest.raises(PolicyError, match="No such file"):
        solver.using(tmp_path / "missing.onnx")


def test_the_runtime_is_kept_from_reporting_to_its_maker(tmp_path: Path) -> None:
    """Where it reports, it keeps an id of the device in the user's folder."""
    usual = {name: value for name, value in os.environ.items() if name not in ("CI", "ORT_DISABLE_TELEMETRY")}
    env = usual | {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    program = "from ces_core.learned.policy import SHIPPED, load_policy; load_policy(SHIPPED)"
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
    assert [path for path in tmp_path.rglob("*") if "onnxruntime" in path.name] == []


def test_without_the_runtime_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(PolicyError, match=r"ces-core\[policy\]"):
        load_policy(SHIPPED)


def test_without_the_runtime_what_needs_it_is_not_offered_and_asking_for_it_names_the_remedy() -> None:
    without, everything = own(runtime=False), own(runtime=True)
    assert everything.keys() - without.keys() == {
        "imitation",
        "imitation-greedy",
        "imitation-64",
        "ces-ppo-thesis",
        "ppo-balance",
    }
    assert without[DEFAULT] is everything[DEFAULT] is SEARCH_LEARNED
    program = """
import sys
sys.modules["onnxruntime"] = None  # as if it were not installed
import typer
from ces_experiments.common import options
from ces_core.model.errors import UnknownSolverError
from ces_core.registry import get_solver
from ces_scheduler.solver_choice import choose
for ask in (get_solver, lambda name: choose(name, None), lambda name: options.solvers("--solvers", name)):
    try:
        ask("imitation")
    except (UnknownSolverError, typer.BadParameter) as error:
        print(error)
print(choose("default", None).fallback)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    *refusals, fallback = run.stdout.splitlines()
    assert len(refusals) == 3
    assert all(line.startswith("imitation needs ONNX Runtime") and "ces-core[policy]" in line for line in refusals)
    assert fallback == "None"


@pytest.mark.parametrize("regime", sorted(REGIMES))
def test_plans_of_the_policy_are_valid_and_far_better_than_chance(regime: str) -> None:
    regrets, by_luck = [], []
    for seed in range(2_000, 2_012):
        data = random_instance(regime, seed)
        problem = read_instance(data)
        best, one, many = (solver.solve(problem) for solver in (SEARCH, IMITATION, IMITATION_64))
        assert one.feasible == best.feasible
        if best.metrics is None:
            assert one.reason is not None
            assert not one.reason.proven or one.reason == best.reason
            continue
        assert check(data, one.to_dict()) == []
        assert check(data, many.to_dict()) == []
        assert one.metrics is not None
        assert many.metrics is not None
        assert many.metrics.composite >= one.metrics.composite - 1e-9
        regrets.append(best.metrics.composite - one.metrics.composite)
        lucky = greedy(problem_view(problem), uniform_scores)
        if not isinstance(lucky, Stuck):
            by_luck.append(best.metrics.composite - float(lucky.state.score[0]))
    assert np.mean(regrets) < 0.5 * np.mean(by_luck)


def test_the_same_seed_gives_the_same_plan_and_clusters_of_any_size_do() -> None:
    assert {"imitation", "imitation-64"} <= available().keys()
    for nodes, tasks in ((3, 2), (40, 12)):
        problem = read_instance(random_instance("thesis", 7, nodes=nodes, tasks=tasks))
        first, again = (IMITATION_64.solve(problem, seed=3) for _ in range(2))
        assert first.feasible
        assert first.plan == again.plan
