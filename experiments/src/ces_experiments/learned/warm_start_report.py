"""The warm-start benchmark's results as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure, percent
from ces_experiments.learned.warm_start import Question, measure


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One line for each case, regime, limit and kind of paths."""
    question = results["question"]
    names = question["base"], question["other"]
    columns = ["case", "regime", "limit, ms", "paths", *(f"{name}: placed %" for name in names)]
    columns += [*(f"{name}: below best known" for name in names), "gain", *(f"{name}: mean ms" for name in names)]
    rows = [
        [case, regime, limit, paths, *_row(cell, names)]
        for case, by_regime in results["cases"].items()
        for regime, by_limit in by_regime.items()
        for limit, by_paths in by_limit.items()
        for paths, cell in by_paths.items()
    ]
    title = (
        f"`{names[1]}` against `{names[0]}`, {question['rounds']} jobs for each regime and number of tasks, seed "
        f"{question['seed']}. Below best known and gain: means over the jobs that both placed, the gain with its "
        "standard error."
    )
    return [Grid(title, columns, rows)]


def _row(cell: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    both, gain = [cell["solvers"][name] for name in names], cell["gain"]
    told = f"{gain['mean']:+.5f} ± {gain['std'] / math.sqrt(gain['n']):.5f}" if gain["n"] else "-"
    return [
        *(percent(each["placed"]) for each in both),
        *(figure(each["regret"], "mean", 5) for each in both),
        told,
        *(figure(each["wall_ms"], "mean", 1) for each in both),
    ]


REPORT = Report(tables)
WARM_START = Experiment(Question.of, measure, REPORT)
