"""What the answers of the placement benchmark come to. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ces_experiments.common.spread import best_first, share, spread
from ces_experiments.placement.comparison import Answer, Question
from ces_experiments.placement.optima import EQUAL, Truth
from ces_sim.rounds import Round

PARTS = ("composite", "load_imbalance", "bandwidth_satisfaction")


def summarise(
    question: Question, answers: Sequence[Answer], truths: Mapping[Round, Truth], best: Mapping[Round, float]
) -> dict[str, Any]:
    """Per regime: how hard the rounds are; every solver's figures, in all, by number of tasks and over time limits."""
    return {
        "question": asdict(question),
        "regimes": {
            regime: _regime(
                question,
                [answer for answer in answers if answer.round.regime == regime],
                {asked: truth for asked, truth in truths.items() if asked.regime == regime},
                {asked: value for asked, value in best.items() if asked.regime == regime},
            )
            for regime in question.regimes
        },
    }


def _regime(
    question: Question, answers: Sequence[Answer], truths: Mapping[Round, Truth], best: Mapping[Round, float]
) -> dict[str, Any]:
    main = [answer for answer in answers if answer.limit_s == question.time_limit_s]
    whole = case(question.solvers, main, truths, best)
    return whole | {
        "truth_cpu_ms": spread(truth.cpu_s * 1e3 for truth in truths.values()),
        "best_known": {
            "all_tasks": {"composite": spread(best.values())},
            "by_tasks": {
                str(size): {"composite": spread(value for asked, value in best.items() if asked.tasks == size)}
                for size in question.tasks
            },
        },
        "solvers": {
            name: {
                "all_tasks": all_tasks,
                "by_tasks": {
                    str(size): quality([answer for answer in given if answer.round.tasks == size])
                    for size in question.tasks
                },
                "refused_for": dict(Counter(answer.refused_for for answer in given if answer.refused_for)),
            }
            for name, all_tasks in whole["solvers"].items()
            for given in [[answer for answer in main if answer.solver == name]]
        },
        "anytime": {
            name: [
                {"limit_s": limit} | quality(given) | below(given, best) | effort(given)
                for limit in sorted(question.limits, key=lambda limit: (limit is None, limit))
                if (given := [answer for answer in answers if (answer.solver, answer.limit_s) == (name, limit)])
            ]
            for name in question.solvers
        },
    }


def case(
    solvers: Sequence[str], answers: Sequence[Answer], truths: Mapping[Round, Truth], best: Mapping[Round, float]
) -> dict[str, Any]:
    """Rounds that are told of together: how hard they are, and every solver's figures."""
    rounds = {answer.round for answer in answers}
    everywhere = rounds - {answer.round for answer in answers if answer.composite is None}
    optima = {asked for asked, truth in truths.items() if truth.optimal}
    return {
        "instances": len(rounds),
        "placed_by_somebody": len(best),
        "placed_by_all": len(everywhere),
        "proven_optima": len(optima),
        "proven_impossible": sum(truth.impossible for truth in truths.values()),
        "solvers": {
            name: quality(given) | against(given, everywhere, best, optima) | effort(given)
            for name in solvers
            if (given := [answer for answer in answers if answer.solver == name])
        },
    }


def quality(given: Sequence[Answer]) -> dict[str, Any]:
    """``composite`` and its parts are over what was placed; ``composite_or_0`` over everything, 0 for what was not."""
    placed = [answer for answer in given if answer.composite is not None]
    found: dict[str, Any] = {"placed": share(len(placed), len(given))}
    found |= {part: spread(getattr(answer, part) for answer in placed) for part in PARTS}
    return found | {"composite_or_0": spread(answer.composite or 0.0 for answer in given)}


def against(
    given: Sequence[Answer], everywhere: Collection[Round], best: Mapping[Round, float], optima: Collection[Round]
) -> dict[str, Any]:
    """Against the others: where all have placed, how far from the best known, and how often at a proven optimum."""
    placed = [(answer.round, answer.composite) for answer in given if answer.composite is not None]
    return below(given, best) | {
        "composite_where_all_placed": spread(value for asked, value in placed if asked in everywhere),
        "optimal": share(sum(asked in optima and value >= best[asked] - EQUAL for asked, value in placed), len(optima)),
    }


def below(given: Sequence[Answer], best: Mapping[Round, float]) -> dict[str, Any]:
    """How far below the best known: ``regret`` over what was placed; ``shortfall`` over all jobs that have a place, of
    which one that was not placed lacks everything."""
    there = [(best[answer.round], answer.composite) for answer in given if answer.round in best]
    return {
        "regret": spread(top - value for top, value in there if value is not None),
        "shortfall": spread(top - (value or 0.0) for top, value in there),
    }


def effort(given: Sequence[Answer]) -> dict[str, Any]:
    return {
        "wall_ms": spread(answer.wall_ms for answer in given),
        "cpu_ms": spread(answer.cpu_ms for answer in given),
    }


def ranked(regimes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The solvers, best first, by the mean over these regimes' results."""
    return best_first(
        [found["solvers"] for found in regimes], lambda solver: solver["all_tasks"]["composite_or_0"]["mean"]
    )
