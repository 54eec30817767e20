"""Two solvers on one logged problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from evolving_policies import MIB, NOON, decided, logged, poisoned, problems

from ces_core.evolution.confidence import CAP
from ces_core.evolution.decision_log import DecisionLog, Logged, read_log
from ces_core.evolution.pairing import compared, pairs_of
from ces_core.learned.policy_solvers import IMITATION_GREEDY
from ces_core.model.plan import Result
from ces_core.model.problem import Problem
from ces_core.search.greedy import GREEDY
from ces_core.search.solver import SEARCH
from ces_core.solver import Solver

pytestmark = pytest.mark.usefixtures("policy_compiled")


@pytest.fixture
def one(tmp_path: Path) -> Logged:
    return logged_once(tmp_path)


def logged_once(folder: Path, **how: Any) -> Logged:
    log = DecisionLog(folder, MIB)
    log.append(decided("j.1", problems(range(3), solver=GREEDY)[0], NOON, GREEDY, **how))
    log.close()
    return read_log(folder).decisions[0]


@dataclass(frozen=True)
class Wrong:
    """A solver that says what is not so, or fails."""

    error: Exception | None = None
    name: str = "wrong"
    summary: str = ""

    def solve(self, problem: Problem, *, seed: int = 0, time_limit_s: float | None = None) -> Result:
        if self.error is not None:
            raise self.error
        result = GREEDY.solve(problem, seed=seed)
        assert result.plan is not None
        everywhere = dict.fromkeys(result.plan.assignments, problem.cluster.topology.nodes[0])
        return replace(result, plan=replace(result.plan, assignments=everywhere))


def test_a_solver_gains_nothing_over_itself(one: Logged) -> None:
    ticks = count()
    pair = compared(one, GREEDY, GREEDY, lambda: next(ticks) * 0.002)
    assert pair is not None
    assert (pair.name, pair.gain, pair.refused) == ("j.1", 0.0, False)
    assert pair.ms == pytest.approx((2.0, 2.0))


def test_the_gain_is_the_difference_of_the_composites_and_its_sign_that_of_the_better_one(tmp_path: Path) -> None:
    logged(tmp_path, range(12))
    found = [compared(each, GREEDY, SEARCH) for each in read_log(tmp_path).decisions]
    gains = [pair.gain for pair in found if pair is not None]
    assert all(gain >= -1e-9 for gain in gains)
    assert max(gains) > 0.001
    back = [compared(each, SEARCH, GREEDY) for each in read_log(tmp_path).decisions]
    assert [pair.gain for pair in back if pair is not None] == pytest.approx([-gain for gain in gains])


@pytest.mark.parametrize("wrong", [Wrong(), Wrong(RuntimeError("broken"))])
def test_a_plan_that_breaks_a_rule_and_a_failure_count_as_a_refused_job(one: Logged, wrong: Solver) -> None:
    pair, mirrored = compared(one, GREEDY, wrong), compared(one, wrong, GREEDY)
    assert pair is not None
    assert mirrored is not None
    assert (pair.gain, pair.refused) == (-CAP, True)
    assert (mirrored.gain, mirrored.refused) == (CAP, False)


def test_a_decision_in_which_later_jobs_counted_is_not_compared(tmp_path: Path) -> None:
    assert compared(logged_once(tmp_path, fragmentation_aware=True), GREEDY, GREEDY) is None


@pytest.mark.needs("torch")
def test_a_poisoned_policy_loses(tmp_path: Path) -> None:
    worst = IMITATION_GREEDY.using(poisoned(tmp_path / "worst.onnx"))
    logged(tmp_path / "log", range(20))
    found = [compared(each, IMITATION_GREEDY, worst) for each in read_log(tmp_path / "log").decisions]
    pairs = pairs_of(pair for pair in found if pair is not None)
    assert len(pairs) > 10
    assert pairs.gains.mean() < -0.01
