"""Tables of the mixed load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import gain
from ces_experiments.gpus.mix import Question, measure


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each list and load."""
    return [_grid(each, results["question"]["seeds"]) for each in results["loads"]]


def _grid(found: Mapping[str, Any], seeds: int) -> Grid:
    rows = []
    for who, figures in found["contenders"].items():
        more = figures["gain"]
        means = [f"{100 * figures[name]['mean']:.2f}" for name in ("milli", "whole", "part")]
        rows.append(
            [
                who, means[0], gain(more["milli"], 100, 2), means[1], gain(more["whole"], 100, 2), means[2],
                gain(more["part"], 100, 2), f"{figures['free']['mean']:.1f}", gain(more["imbalance"], 1, 4),
            ]
        )  # fmt: skip
    columns = [
        "who decides", "GPU placed, %", "gain", "whole cards, %", "gain ", "shares, %", "gain  ", "cards free",
        "imbalance",
    ]  # fmt: skip
    title = f"{found['list']}, load {found['load']:g}: of what is asked, mean of {seeds} draws; gains over the "
    return Grid(title + "composite alone, pair by pair, ± 95 % confidence.", columns, rows)


REPORT = Report(tables)
MIX = Experiment(Question, measure, REPORT)
