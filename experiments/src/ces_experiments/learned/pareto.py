"""The Pareto benchmark: load imbalance L against bandwidth satisfaction D, as the weights of the objective vary.

An instance has weights for the parts of L alone. Scaled by a / (1 - a) they make ``0.5 (1 - L) + 0.5 D`` rank plans as
``a (1 - L) + (1 - a) D`` does, with L at its usual equal weights: ``a`` is the weight of balance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ces_core.model.problem import EQUAL_WEIGHTS
from ces_experiments.common.spread import share, spread
from ces_experiments.placement.comparison import Answer, Asked
from ces_experiments.placement.optima import Truth
from ces_sim.rounds import Round, rounds

Point = tuple[float, float]
"""L and D of a plan."""


@dataclass(frozen=True)
class Weighed(Round):
    """A round in which balance has a weight between 0 and 1, and bandwidth the rest."""

    balance: float = 0.5

    @property
    def scale(self) -> float:
        """By how much L counts more than D."""
        return self.balance / (1.0 - self.balance)

    def instance(self) -> dict[str, Any]:
        return super().instance() | {"weights": [self.scale * weight for weight in EQUAL_WEIGHTS]}


@dataclass(frozen=True)
class Question(Asked):
    """Every job under every weight in ``balance``."""

    balance: tuple[float, ...]

    def all_rounds(self) -> Iterator[Weighed]:
        for each in rounds(self.regimes, self.tasks, self.rounds, self.seed):
            for weight in self.balance:
                yield Weighed(each.regime, each.tasks, each.number, each.seed, balance=weight)


def summarise(
    question: Question, answers: Sequence[Answer], truths: Mapping[Round, Truth], best: Mapping[Round, float]
) -> dict[str, Any]:
    """Per regime, solver and weight, over the jobs that all solvers placed under all weights: L, D and what the weighed
    objective lacks. Pure."""
    return {
        "question": asdict(question),
        "regimes": {
            regime: _regime(question, [answer for answer in answers if answer.round.regime == regime], best)
            for regime in question.regimes
        },
    }


def _regime(question: Question, answers: Sequence[Answer], best: Mapping[Round, float]) -> dict[str, Any]:
    refused = {answer.round.seed for answer in answers if answer.composite is None}
    compared = [answer for answer in answers if answer.round.seed not in refused]
    apart = _apart(compared)
    return {
        "instances": len({answer.round.seed for answer in answers}),
        "placed_by_all": len({answer.round.seed for answer in compared}),
        "solvers": {
            name: {
                "placed": share(sum(answer.composite is not None for answer in given), len(given)),
                "by_balance": {
                    f"{weight:g}": _figures(
                        [answer for answer in compared if answer.solver == name and _balance(answer) == weight],
                        apart,
                        best,
                    )
                    for weight in question.balance
                },
            }
            for name in question.solvers
            if (given := [answer for answer in answers if answer.solver == name])
        },
    }


def _balance(answer: Answer) -> float:
    assert isinstance(answer.round, Weighed)
    return answer.round.balance


def _point(answer: Answer) -> Point:
    assert isinstance(answer.round, Weighed)
    assert answer.load_imbalance is not None
    assert answer.bandwidth_satisfaction is not None
    return answer.load_imbalance / answer.round.scale, answer.bandwidth_satisfaction


def _apart(compared: Sequence[Answer]) -> dict[int, Point]:
    """By how much each job's mean L and D, over solvers and weights, lie apart from those of all jobs."""
    by_job: dict[int, list[Point]] = {}
    for answer in compared:
        by_job.setdefault(answer.round.seed, []).append(_point(answer))
    means = {seed: np.mean(points, axis=0) for seed, points in by_job.items()}
    middle = np.mean(list(means.values()), axis=0) if means else np.zeros(2)
    return {seed: (float(mean[0] - middle[0]), float(mean[1] - middle[1])) for seed, mean in means.items()}


def _figures(given: Sequence[Answer], apart: Mapping[int, Point], best: Mapping[Round, float]) -> dict[str, Any]:
    """``..._within``: the same means, and the spread that is left when what is peculiar to each job is taken off, as
    solvers and weights are compared on the same jobs."""
    points = [_point(answer) for answer in given]
    peculiar = [apart[answer.round.seed] for answer in given]
    lacking = [
        # 2 (1 - a) turns the scaled composite into a (1 - L) + (1 - a) D, but for a constant.
        2.0 * (1.0 - _balance(answer)) * (best[answer.round] - answer.composite)
        for answer in given
        if answer.composite is not None
    ]
    found = {"regret": spread(lacking), "wall_ms": spread(answer.wall_ms for answer in given)}
    for i, what in enumerate(("load_imbalance", "bandwidth_satisfaction")):
        found[what] = spread(point[i] for point in points)
        found[f"{what}_within"] = spread(point[i] - own[i] for point, own in zip(points, peculiar, strict=True))
    return found
