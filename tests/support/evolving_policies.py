"""Logs of decisions that a solver really made, and policies that are no good."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ces_core.evolution.decision_log import Decided, DecisionLog
from ces_core.evolution.folder import EvolutionFolder, basis_of
from ces_core.evolution.state import Version
from ces_core.learned.policy import SHIPPED
from ces_core.learned.policy_solvers import IMITATION_GREEDY
from ces_core.model.generate import random_instance
from ces_core.model.instance import read_instance
from ces_core.model.problem import Problem
from ces_core.solver import Solver

MIB = 1 << 20
NOON = 1_800_014_400.0  # of a day (UTC), as Unix time


def decided(
    name: str,
    problem: Problem,
    at_s: float = NOON,
    solver: Solver = IMITATION_GREEDY,
    *,
    fragmentation_aware: bool = False,
) -> Decided:
    """The decision of a solver without a time limit, as a scheduler logs it."""
    result = solver.solve(problem, seed=1)
    assert result.plan is not None
    assert result.metrics is not None
    return Decided(
        name=name,
        at_s=at_s,
        problem=problem,
        seed=1,
        time_limit_s=None,
        solver=result.solver,
        policy=None if result.advice is None else result.advice.version,
        fragmentation_aware=fragmentation_aware,
        composite=result.metrics.objective,
        ms=1.0,
        assignments=result.plan.assignments,
        flows=[flow.to_dict() for flow in result.plan.flows],
    )


def problems(seeds: Iterable[int], regime: str = "thesis", solver: Solver = IMITATION_GREEDY) -> list[Problem]:
    """Those of the random ones for which there is a place."""
    found = [read_instance(random_instance(regime, seed, nodes=8, tasks=5)) for seed in seeds]
    return [each for each in found if solver.solve(each).plan is not None]


def logged(folder: Path, seeds: Iterable[int], first_s: float = NOON, every_s: float = 60.0) -> int:
    """Log a decision on each of the problems; returns how many there are."""
    log = DecisionLog(folder, 64 * MIB)
    found = problems(seeds)
    for number, problem in enumerate(found):
        log.append(decided(f"j{first_s:.0f}-{number}.1", problem, first_s + every_s * number))
    log.close()
    return len(found)


def begun(path: Path, solver: str = "imitation-greedy") -> EvolutionFolder:
    """A folder that a scheduler has begun with."""
    folder = EvolutionFolder(path)
    folder.change(lambda state: state.model_copy(update={"basis": basis_of(solver, None)}))
    return folder


def added(
    folder: EvolutionFolder, policy: Path = SHIPPED, learned_until_s: float = 0.0, made_s: float = NOON
) -> Version:
    """A version of this file, which says that it has learned until then."""
    about = {"policy": "imitation-test", "made_s": made_s, "learned_until_s": learned_until_s}
    return folder.add(policy, {}, decisions=0, synthetic=0, seed=0, **about)


def poisoned(path: Path) -> Path:
    """A policy whose best node is the worst. Needs onnx."""
    from ces_experiments.learned.evolution import turned_round

    return turned_round(path)
