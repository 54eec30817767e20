"""The placement benchmark's results as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from ces_core.model.errors import PolicyError
from ces_core.solver import Learned
from ces_experiments.common import words
from ces_experiments.common.options import on_network, proving
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure, of, percent, plus_minus
from ces_experiments.placement.comparison import OWN, Question
from ces_experiments.placement.experiment import on_single_jobs
from ces_experiments.placement.plots import pictures
from ces_experiments.placement.summary import ranked, summarise

COLUMNS = {
    "placed %": of("placed", percent),
    "composite": of("composite", plus_minus),
    "composite, 0 if unplaced": of("composite_or_0", plus_minus),
    "L": of("load_imbalance", figure, "mean"),
    "D": of("bandwidth_satisfaction", figure, "mean"),
    "below best known": of("regret", figure, "mean", 5),
    "optimal %": of("optimal", percent),
    "ms p50": of("wall_ms", figure, "p50", 2),
    "ms p99": of("wall_ms", figure, "p99", 2),
}


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each regime; best first by the composite that counts jobs without a place as 0."""
    return [_table(results["question"], regime, found) for regime, found in results["regimes"].items()]


def _table(question: Mapping[str, Any], regime: str, found: Mapping[str, Any]) -> Grid:
    title = (
        f"Regime {regime}: {found['instances']} jobs of {words.span(question['tasks'])} tasks, "
        f"{words.network(question)}, seed {question['seed']}, {words.limit(question)}. "
        f"{found['placed_by_somebody']} were placed by some solver, {found['placed_by_all']} by all; "
        f"{found['proven_optima']} optima are proven, {found['proven_impossible']} jobs proven to have no place"
    )
    took = found["truth_cpu_ms"]
    if took["n"]:
        title += f"; that took {took['p50']:.1f} ms of CPU time in the median, {took['max'] / 1e3:.2f} s at most"
    solvers = {name: each["all_tasks"] for name, each in found["solvers"].items()}
    grid = Grid.of(f"{title}.", "solver", COLUMNS, [(name, solvers[name]) for name in ranked([found])])
    share = f"{100 * found['placed_by_somebody'] / found['instances']:.1f}"
    best = plus_minus(found["best_known"]["all_tasks"]["composite"])
    return grid.with_row(["best known", share, best, *["-"] * (len(COLUMNS) - 2)])


def asked(*, policy: Path | None, solvers: tuple[str, ...], **values: Any) -> Question:
    """With a policy of one's own beside the usual one of each solver that can ask it. Raises typer.BadParameter."""
    if policy is None:
        return Question(solvers=solvers, **values)
    question = Question(solvers=solvers, policy=str(policy), **values)
    beside, refusal = list(solvers), "none of the compared solvers asks a policy"
    for name in solvers:
        if isinstance(question.solver(name), Learned):
            own = f"{name}{OWN}{policy.name}"
            try:
                question.solver(own)
            except PolicyError as error:
                refusal = str(error)
            else:
                beside.insert(beside.index(name) + 1, own)
    if len(beside) == len(solvers):
        raise typer.BadParameter(refusal, param_hint="--policy")
    return replace(question, solvers=tuple(beside))


REPORT = Report(tables, pictures)
PLACEMENT = on_single_jobs(on_network(proving(asked), 10), summarise, REPORT)
