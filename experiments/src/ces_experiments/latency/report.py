"""Tables of the games on backbones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure, of, percent
from ces_experiments.latency.experiment import NEAR, Question, measure


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """How near the solver comes within each limit, and how hard the games are."""
    question, cases = results["question"], results["cases"]
    columns = {
        "placed %": of("placed", percent),
        "objective": of("objective", figure, "mean", 4),
        "below exact": of("below", figure, "mean", 5),
        "worst": of("below", figure, "max", 5),
        f"within {NEAR:g}, %": of("near", percent),
        "below the bound where unproven": of("below_bound", figure, "mean", 4),
        "ms p50": of("wall_ms", figure, "p50", 1),
        "p99": of("wall_ms", figure, "p99", 1),
        "of it CPU, p50": of("cpu_ms", figure, "p50", 1),
    }
    first = f"VR games, {question['seeds']} of each kind, first seed {question['seed']}"
    grids = [
        Grid.of(
            f"{first}: {question['solver']} within {limit}. Placed: of the games for which exact has a plan.",
            "game",
            columns,
            [(name, case["limits"][limit]) for name, case in cases.items()],
        )
        for limit in next(iter(cases.values()))["limits"]
    ]
    exact = {
        "games": lambda case: str(case["games"]),
        "proven %": of("proven", percent),
        "without a place": lambda case: str(case["impossible"]),
        "objective": of("exact_objective", figure, "mean", 4),
        "CPU s, p50": of("exact_cpu_s", figure, "p50", 2),
        "most": of("exact_cpu_s", figure, "max", 2),
    }
    title = f"What exact found of the same games within {question['proof_s']:g} s each."
    return [*grids, Grid.of(title, "game", exact, list(cases.items()))]


REPORT = Report(tables)
LATENCY = Experiment(Question, measure, REPORT)
