"""Tables of the experiment with divided graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import confidence, figure, gain, of, percent
from ces_experiments.decomposition.experiment import Question, measure


def _ratio(found: Mapping[str, Any]) -> str:
    """A mean of ratios, with how far the true one may be from it, and how many there were."""
    if not found["n"]:
        return "-"
    return f"{found['mean']:.3f} ± {confidence(found)[1]:.3f} (n = {found['n']})"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What is cut, and what becomes of it on a cluster."""
    rows, seeds = list(results["sizes"].items()), results["question"]["seeds"]
    cuts = {
        "clusters / METIS": of("to_metis", _ratio),
        "worst": of("to_metis", figure, "max"),
        "clusters / random": of("to_random", _ratio),
    }
    places = {
        "composite": of("composite", figure, "mean", 4),
        "over random, 1/1000": of("over_random", gain, 1000, 1),
        "over unsplit, 1/1000": of("over_unsplit", gain, 1000, 1),
        "placed, %": of("placed", percent),
        "random, %": of("placed_random", percent),
        "unsplit, %": of("placed_unsplit", percent),
    }
    title = f"Traffic between parts, {seeds} graphs: mean ratio ± 95 % confidence; METIS where it keeps to capacities."
    return [
        Grid.of(title, "graph", cuts, rows),
        Grid.of(f"Composite of the places of {seeds} graphs, paired ± 95 % confidence.", "graph", places, rows),
    ]


DECOMPOSITION = Experiment(Question, measure, Report(tables))
