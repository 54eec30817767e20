"""The long-run benchmark: solvers side by side on the same clusters and jobs, difference by difference.

What jobs come to differs more from cluster to cluster than from solver to solver, so each repeat is compared with
itself: the spread of the differences says how sure a gain is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ces_core.bench.online import POLICIES, Question, paced, summary
from ces_core.bench.spread import spread
from ces_core.simulator.online import simulate
from ces_core.simulator.outcome import Outcome
from ces_core.solvers import get_solver
from ces_core.solvers.warm import warm_up

MEASURES = ("accepted", "work", "bandwidth_satisfaction", "served", "load_imbalance", "composite", "wait_s")
"""What is compared, see :func:`measures`."""


@dataclass(frozen=True)
class Comparison:
    """``online`` says what comes, except for the regime of the links; its first solver is the one to beat."""

    online: Question
    regimes: tuple[str, ...]

    @property
    def simulations(self) -> int:
        question = self.online
        return len(self.regimes) * len(question.loads) * question.repeats * len(question.solvers)


def measures(outcome: Outcome) -> dict[str, float]:
    """``work``: share of the CPU time asked for that got a place. ``served``: mean satisfaction over all jobs that
    came, 0 for those that never ran, so that nobody gains by refusing the hard ones. The others as in the online
    benchmark."""
    told = summary([outcome])
    asked = np.array([sum(task.cpu for task in fate.job.tasks) * fate.job.duration_s for fate in outcome.fates])
    ran = np.array([fate.started_s is not None for fate in outcome.fates])
    served = [fate.bandwidth_satisfaction or 0.0 for fate in outcome.fates]
    own = {"work": float(asked @ ran / asked.sum()), "served": float(np.mean(served))}
    return {name: own[name] if name in own else float(told[name].get("mean", 0.0)) for name in MEASURES}


def compare(comparison: Comparison, advance: Callable[[], None]) -> dict[str, Any]:
    """Per regime and load: each solver's spreads over the repeats, and those of its differences to the first.

    Raises BadDecisionError.
    """
    question = comparison.online
    for name in question.solvers:
        warm_up(get_solver(name))
    regimes = {regime: _regime(question, regime, advance) for regime in comparison.regimes}
    told = asdict(question) | {"regimes": comparison.regimes}
    del told["regime"], told["trace"]
    return {"question": told, "regimes": regimes}


def _regime(question: Question, regime: str, advance: Callable[[], None]) -> dict[str, Any]:
    runs: dict[float, dict[str, list[dict[str, float]]]] = {
        load: {name: [] for name in question.solvers} for load in question.loads
    }
    here = replace(question, regime=regime)
    for repeat in range(question.repeats):
        cluster, jobs = here.cluster(repeat), here.workload(repeat)
        cluster.topology.paths.warm()
        for load in question.loads:
            for name in question.solvers:
                outcome = simulate(
                    cluster,
                    paced(jobs, cluster, load),
                    get_solver(name),
                    POLICIES[question.policy],
                    patience_s=question.patience_s,
                    seed=question.seed,
                    time_limit_s=question.time_limit_s,
                )
                runs[load][name].append(measures(outcome))
                advance()
    return {f"{load:g}": summarise(question.solvers, found) for load, found in runs.items()}


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
