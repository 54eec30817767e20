"""The long-run benchmark: solvers side by side on the same clusters and jobs, difference by difference.

What jobs come to differs more from cluster to cluster than from solver to solver, so each repeat is compared with
itself: the spread of the differences says how sure a gain is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import typer
from rich.progress import Progress

from ces_experiments.common.console import counted
from ces_experiments.common.report import Found
from ces_experiments.common.spread import spread
from ces_experiments.queue.online import Question
from ces_sim.outcome import Outcome

MEASURES = ("accepted", "work", "bandwidth_satisfaction", "served", "load_imbalance", "composite", "wait_s")
"""What is compared, see :func:`measures`."""


@dataclass(frozen=True)
class Comparison:
    """``online`` says what comes, except for the regime of the links; its first solver is the one to beat."""

    online: Question
    regimes: tuple[str, ...]

    @staticmethod
    def of(*, regimes: tuple[str, ...], solvers: tuple[str, ...], **values: Any) -> Comparison:
        """Raises typer.BadParameter where there is nothing to compare with."""
        if len(solvers) < 2:
            raise typer.BadParameter("a comparison takes two", param_hint="--solvers")
        online = Question(
            regime=regimes[0], topology="random", tasks=tuple(range(3, 9)), duration_s=600.0, patience_s=600.0,
            policy="fcfs-backfill", solvers=solvers, **values,
        )  # fmt: skip
        return Comparison(online, regimes)


def measures(outcome: Outcome) -> dict[str, float]:
    """``work``: share of the CPU time asked for that got a place. ``served``: mean satisfaction over all jobs that
    came, 0 for those that never ran, so that nobody gains by refusing the hard ones. The others as in the online
    benchmark."""
    asked = np.array([sum(task.cpu for task in fate.job.tasks) * fate.job.duration_s for fate in outcome.fates])
    ran = np.array([fate.started_s is not None for fate in outcome.fates])
    served = [fate.bandwidth_satisfaction or 0.0 for fate in outcome.fates]
    found = outcome.figures() | {"work": float(asked @ ran / asked.sum()), "served": float(np.mean(served))}
    return {name: found[name] or 0.0 for name in MEASURES}


def measure(comparison: Comparison, progress: Progress) -> Found:
    """Per regime and load: each solver's spreads over the repeats, and those of its differences to the first.

    Raises BadDecisionError.
    """
    question = comparison.online
    advance = counted(progress, "simulations", len(comparison.regimes) * question.simulations)
    regimes = {regime: _regime(replace(question, regime=regime), advance) for regime in comparison.regimes}
    told = asdict(question) | {"regimes": comparison.regimes}
    del told["regime"], told["trace"]
    return Found({"question": told, "regimes": regimes})


def _regime(question: Question, advance: Callable[[], None]) -> dict[str, Any]:
    runs: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for load, name, _, outcome in question.runs():
        runs[load][name].append(measures(outcome))
        advance()
    return {load: summarise(question.solvers, found) for load, found in runs.items()}


def summarise(solvers: Sequence[str], runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Spreads over the repeats: of each solver's measures, and of how far they lie above those of the first. Pure."""
    first = runs[solvers[0]]
    return {
        "solvers": {name: {what: spread(run[what] for run in runs[name]) for what in MEASURES} for name in solvers},
        "differences": {
            name: {
                what: spread(run[what] - base[what] for run, base in zip(runs[name], first, strict=True))
                for what in MEASURES
            }
            for name in solvers[1:]
        },
    }
