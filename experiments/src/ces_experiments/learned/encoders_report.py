"""What the graph encoder gains on the pooled one, as tables and a picture. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.plots import Column
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import gain, plus_minus
from ces_experiments.common.words import span

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = "all"
"""The instances of all regimes together."""


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    first, runs = question["seed"], question["runs"]
    return (
        f"networks of {question['nodes']} nodes of degree {question['degree']:g}, {span(question['tasks'])} tasks, "
        f"{question['updates']} updates of {question['episodes']} jobs, seeds {first} to {first + runs - 1}, "
        f"{question['validation']} held-out instances of each regime"
    )


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What policies are worth, the decisions to a fixed regret, the difference seed by seed, and what it costs."""
    return [_worth(results), _reached(results), _differences(results), _costs(results)]


def _worth(results: Mapping[str, Any]) -> Grid:
    question, curves = results["question"], results["curves"]
    ways, groups = _ways(results), _groups(results)
    columns = [f"{way}: {group}" for way in ways for group in groups] + [f"{way}: placed %" for way in ways]
    rule = [f"{results['rule']['regret'][way][group]:.4f}" for way in ways for group in groups]
    rows = [["look-ahead rule", *rule, *(f"{results['rule']['solved'][way][ALL] * 100:.1f}" for way in ways)]]
    ends = {f"{encoder}, before learning": (of, 0) for encoder, of in curves.items()}
    ends |= {f"{encoder}, in the end": (of, -1) for encoder, of in curves.items()}
    for name, (of, mark) in ends.items():
        regrets = [plus_minus(of[way][group][mark]["regret"], 4) for way in ways for group in groups]
        placed = [plus_minus(of[way][ALL][mark]["solved"], 1, 100.0) for way in ways]
        rows.append([name, *regrets, *placed])
    title = (
        f"Regret to `search`: {describe(question)}. Best of {question['draws']} draws; mean ± standard deviation over "
        "the seeds; a job without a place counts as 0.1. The rule is the same decoder without a policy, its draws at "
        "temperature 1."
    )
    return Grid(title, ["policy", *columns], rows)


def _reached(results: Mapping[str, Any]) -> Grid:
    base, other = results["curves"]
    runs = results["question"]["runs"]
    rows = [
        [
            f"{way}, {share} of what it is before learning",
            f"{found['regret']:.4f}",
            *(f"{plus_minus(each, 0)} ({each['n']} of {runs})" for each in found["decisions"].values()),
            gain(found["gain"], 1.0, 0),
            f"{found['less']} of {found['gain']['n']}",
        ]
        for way, shares in results["reached"].items()
        for share, found in shares.items()
    ]
    title = (
        f"Decisions judged until the regret on all instances is first so low: mean ± standard deviation over the runs "
        f"that come to it, and {other} less {base} seed by seed, ± 95 % confidence, where both do."
    )
    columns = ["regret", "fixed at", base, other, f"{other} less {base}", f"{other} sooner"]
    return Grid(title, columns, rows)


def _differences(results: Mapping[str, Any]) -> Grid:
    base, other = results["curves"]
    rows = [
        [f"{way}: {group}", *_told(found["last"]), *_told(found["over"])]
        for way, groups in results["differences"].items()
        for group, found in groups.items()
    ]
    title = (
        f"The regret with the {other} encoder less that with the {base} one, seed by seed, ± 95 % confidence: after "
        "the last update, and as a mean over the decisions of the run. Below zero the graph encoder is better."
    )
    return Grid(title, ["regret", "in the end", "below zero in", "over the run", "below zero in"], rows)


def _told(found: Mapping[str, Any]) -> tuple[str, str]:
    return gain(found["gain"], 1.0, 5), f"{found['less']} of {found['gain']['n']}"


def _costs(results: Mapping[str, Any]) -> Grid:
    rows = []
    for encoder, of in results["networks"].items():
        runs = [run for run in results["runs"] if run["encoder"] == encoder]
        minutes = sum(run["cpu_s"] for run in runs) / len(runs) / 60
        judged = sum(run["points"][-1]["steps"] for run in runs) / len(runs)
        rows.append([encoder, f"{of['parameters']:,}", f"{of['asked_ms']:.2f}", f"{judged:,.0f}", f"{minutes:.1f}"])
    title = "What it costs: means over the runs; CPU time of the updates, most of it the teacher's."
    columns = ["encoder", "parameters", "network asked once, ms", "decisions judged", "minutes of CPU"]
    return Grid(title, columns, rows)


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file."""
    ways, groups = _ways(results), _groups(results)
    rows = [Column("regret", f"regret, {way}") for way in ways]
    figure, axes = plots.crossed(rows, groups, "decisions judged", sharey=False)
    for line, way in zip(axes, ways, strict=True):
        for axis, group in zip(line, groups, strict=True):
            for i, (encoder, curves) in enumerate(results["curves"].items()):
                points = curves[way][group]
                places = [point["steps"]["mean"] for point in points]
                mean, least, most = ([point["regret"][key] for point in points] for key in ("mean", "min", "max"))
                axis.fill_between(places, least, most, color=plots.COLOURS[i], alpha=0.2, linewidth=0)
                axis.plot(places, mean, label=encoder, color=plots.COLOURS[i], linestyle=plots.LINES[i], linewidth=1.6)
            rule = results["rule"]["regret"][way][group]
            axis.axhline(rule, label="look-ahead rule", color="#444444", linewidth=0.8, linestyle=":")
            axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    plots.legend_outside(figure, axes[0][0])
    text = f"{describe(results['question'])}; lines: mean over the seeds, bands: least to most"
    return {"encoders.png": plots.caption(figure, text)}


def _ways(results: Mapping[str, Any]) -> list[str]:
    return list(results["reached"])


def _groups(results: Mapping[str, Any]) -> list[str]:
    return list(results["rule"]["regret"][_ways(results)[0]])


REPORT = Report(tables, pictures)
