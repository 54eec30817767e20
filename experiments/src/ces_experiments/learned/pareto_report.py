"""The Pareto benchmark's results as tables, and as a picture: a front for each solver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots, words
from ces_experiments.common.plots import IMBALANCE, SATISFACTION
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import confidence, figure, percent, plus_minus
from ces_experiments.learned.pareto import Question, summarise
from ces_experiments.placement.experiment import on_single_jobs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXES = "load_imbalance", "bandwidth_satisfaction"


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    return (
        f"jobs of {', '.join(map(str, question['tasks']))} tasks, random network of 10 nodes, seed {question['seed']}, "
        f"{words.limit(question)}"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """For each regime one of L and D, and one of what the weighed objective lacks."""
    question, grids = results["question"], []
    weights = [f"a = {weight:g}" for weight in question["balance"]]
    for regime, found in results["regimes"].items():
        trade = (
            f"Regime {regime}: mean L / mean D by the weight of balance; {found['placed_by_all']} of "
            f"{found['instances']} {describe(question)}, those that all solvers placed under all weights."
        )
        lack = (
            f"Regime {regime}, the same jobs: how far a (1 - L) + (1 - a) D is below the best known, "
            "mean ± standard deviation."
        )
        solvers = {name: list(solver["by_balance"].values()) for name, solver in found["solvers"].items()}
        placed = {name: percent(solver["placed"]) for name, solver in found["solvers"].items()}
        rows = [[name, placed[name], *(_trade(each) for each in given)] for name, given in solvers.items()]
        grids.append(Grid(trade, ("solver", "placed %", *weights), rows))
        rows = [[name, *(plus_minus(each["regret"], 4) for each in given)] for name, given in solvers.items()]
        grids.append(Grid(lack, ("solver", *weights), rows))
    return grids


def _trade(found: Mapping[str, Any]) -> str:
    return " / ".join(figure(found[what], "mean") for what in AXES)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    question, regimes = results["question"], results["regimes"]
    titles = [f"{regime}, {found['placed_by_all']} jobs" for regime, found in regimes.items()]
    picture, [axes] = plots.crossed([SATISFACTION], titles, IMBALANCE.label, sharey=False, width=4.4, height=4.0)
    for axis, found in zip(axes, regimes.values(), strict=True):
        for place, (name, style) in enumerate(plots.styles(question["solvers"]).items()):
            thick = {"linewidth": max(4.0 - place, 1.2), "markersize": max(9.0 - 1.5 * place, 4.0)}
            _front(axis, found["solvers"][name]["by_balance"], {"label": name} | style.look | thick)
        axis.set_ylim(top=min(axis.get_ylim()[1], 1.03))
    plots.legend_outside(picture, axes[0])
    weights = ", ".join(f"{weight:g}" for weight in question["balance"])
    text = (
        f"{describe(question)}; points, from right to left: weight of balance {weights};\n"
        "bars: 95 % confidence of the mean, what is peculiar to each job taken off; further up and left is better"
    )
    return {"front.png": plots.caption(picture, text)}


def _front(axis: Axes, by_balance: Mapping[str, Any], look: dict[str, Any]) -> None:
    """Fronts that lie on each other stay visible where the earlier ones are thicker."""
    given = [each for each in by_balance.values() if each["load_imbalance"]["n"]]
    if not given:
        return
    means = [[each[what]["mean"] for each in given] for what in AXES]
    bars = [
        [list(side) for side in zip(*(confidence(each[f"{what}_within"]) for each in given), strict=True)]
        for what in AXES
    ]
    look = {"elinewidth": 0.8, "ecolor": (look["color"], 0.35), **look}
    axis.errorbar(means[0], means[1], xerr=bars[0], yerr=bars[1], **look)


REPORT = Report(tables, pictures)
PARETO = on_single_jobs(Question, summarise, REPORT)
