"""Tables and a picture of FGD's experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.gpus.fgd import Question, measure
from ces_experiments.gpus.published import AT, CLOSE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each list."""
    return [_grid(results["question"]["seeds"], name, found) for name, found in results["lists"].items()]


def order(policies: Mapping[str, Any]) -> list[str]:
    """Names by what is allocated at the highest load, the most first."""
    return sorted(policies, key=lambda name: (-policies[name]["allocated"][str(AT[-1])]["mean"], name))


def swapped(policies: Mapping[str, Any]) -> list[str]:
    """Pairs in another order than the authors have them, where these are more than CLOSE apart."""
    names, last = order(policies), str(AT[-1])
    return [
        f"{above} and {below}"
        for i, above in enumerate(names)
        for below in names[i + 1 :]
        if policies[below]["published"][last] - policies[above]["published"][last] > CLOSE
    ]


def _grid(seeds: int, name: str, policies: Mapping[str, Any]) -> Grid:
    known = all(found["published"] for found in policies.values())
    words = (
        f"{name}: GPUs allocated, %, at a load of ..., mean of {seeds} seeds (difference from the authors' simulator)"
    )
    if known:
        others = swapped(policies)
        words += (
            f"; in another order at {AT[-1]} %: {', '.join(others)}" if others else f"; the same order at {AT[-1]} %"
        )
    rows = []
    for policy in order(policies):
        found = policies[policy]
        row = [policy]
        for load in map(str, AT):
            mean = found["allocated"][load]["mean"]
            away = f" ({mean - found['published'][load]:+.2f})" if found["published"] else ""
            row.append(f"{mean:.2f}{away}")
        worst = max(found["allocated"][str(AT[-1])]["std"], 0.0)
        rows.append(
            [
                *row, f"{worst:.2f}", f"{found['fragmented'][str(AT[-1])]['mean']:.2f}",
                f"{found['useless']['80']['mean']:.1f}", f"{found['seconds']['max']:.1f}",
            ]
        )  # fmt: skip
    columns = [
        "policy", *(f"{load} %" for load in AT), f"sd at {AT[-1]} %", f"fragmented at {AT[-1]} %",
        "of the free at 80 %", "slowest run, s",
    ]  # fmt: skip
    return Grid(f"{words}.", columns, rows)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    lists = results["lists"]
    figure, axes = plots.wrapped(len(lists), 5, width=2.6, height=2.3)
    for axis, (name, policies) in zip(axes, lists.items(), strict=True):
        names = list(policies)[::-1]
        means = [policies[each]["allocated"][str(AT[-1])]["mean"] for each in names]
        axis.barh(names, means, color=plots.COLOURS[0], height=0.6)
        for place, each in enumerate(names):
            if known := policies[each]["published"]:
                axis.plot([known[str(AT[-1])]], [place], "|", color=plots.COLOURS[1], markersize=11, markeredgewidth=2)
        axis.set(title=name, xlim=(70, 100))
        axis.tick_params(labelsize=7)
    note = f"GPUs allocated, %, once {AT[-1]} % are asked for; stroke: the authors' simulator"
    return {"allocated.png": plots.caption(figure, note)}


REPORT = Report(tables, pictures)
FGD = Experiment(Question, measure, REPORT)
