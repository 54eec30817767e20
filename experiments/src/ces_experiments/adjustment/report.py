"""Days of a job by several ways, as a table and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.adjustment.experiment import ANEW, LEAST, Question, measure
from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import confidence, of, plus_minus

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What each way kept and moved in a day, and how many moves one has beside the other."""
    question = results["question"]
    last = question["seed"] + question["seeds"] - 1
    columns = {
        "deadline kept, % of windows": of("kept", plus_minus, 2, 100),
        "lost while standing still, %": of("standing", plus_minus, 2, 100),
        "worst day, %": lambda found: f"{found['kept']['min'] * 100:.2f}",
        "tasks moved": of("moves", plus_minus, 1),
        "requests meanwhile": of("requests", plus_minus, 0),
        "moves that did not pay": of("useless", plus_minus, 1),
        "back within 10 min": of("returns", plus_minus, 1),
        "of these under equal conditions": of("oscillations", plus_minus, 1),
        "asked": of("answers", plus_minus, 0),
        "changed in place": of("in_place", plus_minus, 0),
    }
    title = (
        f"{question['seeds']} days, seeds {question['seed']} to {last}; a user at {question['speed']:g} times "
        f"walking speed; {question['restart_s']:g} s to restart a task. Mean of a day ± standard deviation."
    )
    grids = [Grid.of(title, "way", columns, results["ways"].items())]
    bounds = [
        [str(question["seed"] + n), f"{each['anyhow'] * 100:.2f}", f"{each['knowing'] * 100:.2f}", str(each["times"])]
        for n, each in enumerate(results["at_most"])
    ]
    grids.append(
        Grid(
            "What no way exceeds: windows that any plan keeps; and knowing the day, with one window lost "
            "whenever tasks with state move and no budget.",
            ["seed", "any plan, %", "knowing the day, %", "times of moves"],
            bounds,
        )
    )
    share = results["share_of_moves"]
    if share["n"]:
        row = [f"{LEAST} / {ANEW}", f"{share['mean']:.3f} ± {confidence(share)[1]:.3f}", str(share["n"])]
        grids.append(Grid("Tasks moved, day by day, mean ± 95 % confidence.", ["", "ratio", "days"], [row]))
    return grids


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file: the first day."""
    figure, ((kept, moved),) = plots.panels(1, 2, width=4.2, height=3.0)
    styles = plots.styles(list(results["ways"]))
    for name, found in results["ways"].items():
        first, look = found["first_day"], {"color": styles[name].colour, "linestyle": styles[name].line}
        hours = [hour + 0.5 for hour in range(len(first["kept_by_hour"]))]
        kept.plot(hours, [100 * share for share in first["kept_by_hour"]], label=name, **look)
        times = [0.0, *(at / 3600 for at in first["moved_at_s"]), 24.0]
        count = [*range(len(times) - 1), len(times) - 2]
        moved.step(times, count, where="post", **look)
    kept.set(xlabel="hour", ylabel="deadline kept, % of windows", xlim=(0, 24), ylim=(0, 102))
    moved.set(xlabel="hour", ylabel="tasks moved", xlim=(0, 24), ylim=(0, None))
    plots.legend_outside(figure, kept)
    return {"adjust.png": plots.caption(figure, f"seed {results['question']['seed']}")}


ADJUSTMENT = Experiment(Question, measure, Report(tables, pictures))
