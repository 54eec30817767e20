"""What ``ces bench amounts`` tells: tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import of, plus_minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = Mapping[str, Any]


def tables(results: Results) -> list[Grid]:
    """What each came to in every setting, and what learned policies are beside the rules."""
    question = results["question"]
    last = question["seed"] + question["rounds"] - 1
    rows = [
        (f"{setting}, {name}", player)
        for setting, found in results["settings"].items()
        for name, player in found["players"].items()
    ]
    came_to = (
        f"{question['rounds']} worlds, seeds {question['seed']} to {last}: mean ± standard deviation. JCT: slots from "
        "a task's arrival to its end; work: CPU-slots and GPU-slots that a task was given."
    )
    columns = {
        "JCT": of("jct", plus_minus, 2),
        "published JCT": lambda player: _number(player["published"]["slots"], ".2f"),
        "deviations away": lambda player: _number(player["published"]["deviations"], "+.1f"),
        "slots in all": of("slots", plus_minus, 1),
        "unfinished tasks": of("unfinished", plus_minus, 1),
        "CPU work": of("cpu_slots", plus_minus, 1),
        "GPU work": of("gpu_slots", plus_minus, 1),
    }
    grids = [Grid.of(came_to, "setting and scheduler", columns, rows)]
    pairs = [
        (f"{setting}, {name} against {peer}", difference)
        for setting, found in results["settings"].items()
        for name, peers in found["against"].items()
        for peer, difference in peers.items()
    ]
    if pairs:
        title = "JCT of learned policies minus that of rules, world by world: below 0 the policy is better."
        columns = {
            "difference, slots": lambda found: f"{found['mean']:+.2f}",
            "95 % interval": lambda found: f"{found['low']:+.2f} to {found['high']:+.2f}",
        }
        grids.append(Grid.of(title, "policy", columns, pairs))
    return grids


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def pictures(results: Results) -> dict[str, Figure]:
    """By the name of their file."""
    drawn = {"jct.png": _durations(results), "done.png": _distributions(results)}
    return drawn | ({"training.png": _training(results)} if results["curves"] else {})


def _durations(results: Results) -> Figure:
    settings = results["settings"]
    figure, axes = plots.panels(1, len(settings), width=3.6, height=3.0)
    for axis, (setting, found) in zip(axes[0], settings.items(), strict=True):
        names = list(reversed(found["players"]))
        for place, name in enumerate(names):
            player = found["players"][name]
            plots.curve(axis, [(place, player["jct"])], 1.0, lying=True, color=plots.COLOURS[0])
            if (published := player["published"]["slots"]) is not None:
                axis.plot([published], [place], "x", color=plots.COLOURS[1], markersize=6)
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.set_title(setting)
        axis.set_xlabel("slots from arrival to end")
        axis.set_xlim(left=0)
    return plots.caption(figure, "dots: mean with its 95 % interval; crosses: published, one run each")


def _distributions(results: Results) -> Figure:
    settings = results["settings"]
    figure, axes = plots.panels(1, len(settings), width=3.6, height=3.0, sharey=True)
    names = list(dict.fromkeys(name for found in settings.values() for name in found["players"]))
    styles = plots.styles(names)
    for axis, (setting, found) in zip(axes[0], settings.items(), strict=True):
        for name, player in found["players"].items():
            share = player["done"]["share"]
            look = {"color": styles[name].colour, "linestyle": styles[name].line, "label": name}
            axis.step(range(1, len(share) + 1), share, where="post", linewidth=1.3, **look)
        axis.set_title(setting)
        axis.set_xlabel("slots")
    axes[0][0].set_ylabel("share of tasks done within")
    plots.legend_outside(figure, axes[0][0])
    return figure


def _training(results: Results) -> Figure:
    figure, axes = plots.panels(1, 1, width=6.0, height=3.4)
    axis = axes[0][0]
    for i, (name, curve) in enumerate(results["curves"].items()):
        axis.plot(
            [point["minutes"] for point in curve], [point["jct"] for point in curve],
            color=plots.COLOURS[i % len(plots.COLOURS)], linewidth=1.2, label=name,
        )  # fmt: skip
    axis.set_xlabel("minutes of training")
    axis.set_ylabel("JCT of drawn actions, slots")
    axis.set_ylim(bottom=0)
    plots.legend_outside(figure, axis)
    return figure


REPORT = Report(tables, pictures)
