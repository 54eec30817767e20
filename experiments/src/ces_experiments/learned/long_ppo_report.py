"""The results of ``ces bench long-ppo`` as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import confidence, gain, of, plus_minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS: Mapping[str, tuple[str, int, float]] = {
    "accepted %": ("accepted", 1, 100.0),
    "D of all that came": ("served", 4, 1.0),
    "D of those that run": ("satisfied", 4, 1.0),
    "work accepted %": ("work", 1, 100.0),
    "mean wait, s": ("wait_s", 0, 1.0),
}
"""Heading -> measure, digits and factor."""
TOLD = ("search-longrun",)
"""What tables tell differences to; results have more."""
NOTE = "mean ± standard deviation over the clusters"


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    return (
        f"{question['repeats']} clusters of 20 nodes, links {question['regime']}, load {question['load']:g}, "
        f"{question['jobs']} jobs each, seeds from {question['seed']}"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What each way came to, how far it lies above others, and how policies were taught."""
    question = results["question"]
    told = [
        Grid.of(
            f"{describe(question)}; {NOTE}.",
            "decided by",
            {heading: of(what, plus_minus, digits, factor) for heading, (what, digits, factor) in COLUMNS.items()},
            results["ways"].items(),
        )
    ]
    for base, found in ((base, results["differences"].get(base)) for base in TOLD):
        if found is None:
            continue
        told.append(
            Grid.of(
                f"The same, above {base}, cluster by cluster: mean ± 95 % confidence.",
                "decided by",
                {heading: of(what, gain, factor, digits) for heading, (what, digits, factor) in COLUMNS.items()},
                found.items(),
            )
        )
    if results["lessons"]:
        rows = [
            [
                name,
                str(each["updates"]),
                f"{each['steps']:,}",
                f"{each['cpu_s'] / 60:.1f}",
                f"{each['scores'][0]:.4f}",
                f"{each['scores'][-1]:.4f}",
            ]
            for name, each in results["lessons"].items()
        ]
        columns = ("lesson", "updates", "steps", "minutes of CPU", "first update", "last update")
        title = "How policies were taught, seed 1; score of the streams of an update: D of all that came."
        told.append(Grid(title, columns, rows))
    return told


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    base = "search-longrun"
    if base not in results["differences"]:
        return {}
    found = results["differences"][base]
    figure, axes = plots.panels(1, 2, width=4.4, height=0.6 + 0.24 * len(found), sharey="all")
    for axis, (what, label, factor) in zip(
        axes[0], (("accepted", "accepted, points", 100.0), ("served", "D of all that came", 1.0)), strict=True
    ):
        means = [factor * each[what]["mean"] for each in found.values()]
        bars = [factor * confidence(each[what])[1] for each in found.values()]
        axis.axvline(0.0, color="#444444", linewidth=0.8)
        axis.errorbar(means, list(found), xerr=bars, fmt="o", markersize=4)
        axis.set_xlabel(label)
    axes[0][0].invert_yaxis()
    text = f"above {base}, cluster by cluster; bars: 95 % confidence\n{describe(results['question'])}"
    return {"gains.png": plots.caption(figure, text)}


REPORT = Report(tables, pictures)
