"""Days on lent devices, as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import confidence, spread
from ces_experiments.malleable.tides.days import HOUR_S, OwnerDay
from ces_experiments.malleable.tides.outcome import ALONE, BESIDE, hours, owners_ms, ratios
from ces_experiments.malleable.tides.run import Question, measure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {ALONE: "alone", BESIDE: "beside a job on lent devices"}
LANE = 0.8


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """What owners noticed, how devices were given back, and each day."""
    runs, question = results["runs"], results["question"]
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(run["seed"] for run in runs))
    days = f"{question['nodes']} devices, days of {question['length_s']:g} s; seeds {seeds}."
    owners = [
        [NAMES[way], str(each["n"]), f"{each['p50']:.2f}", f"{each['p95']:.2f}"]
        for way, each in owners_ms(runs).items()
    ]
    found = [
        Grid(
            f"A piece of an owner's work, from when it was due, ms: means of the owners' percentiles. {days}",
            ["owners", "pieces", "median", "p95"],
            owners,
        )
    ]
    compared = [(what, ratios(runs, key)) for what, key in (("median", "p50"), ("p95", "p95"))]
    if rows := [[what, *_times(values)] for what, values in compared if values]:
        found.append(Grid("Beside a job, by alone: owner by owner, mean ± 95 %.", ["", "owners", "times"], rows))
    beside = [run for run in runs if run["way"] == BESIDE]
    back = [seconds for run in beside for each in run["given_back"].values() for seconds in each]
    if back:
        row = ["frozen workers to none, s", str(len(back)), f"{np.median(back):.2f}", f"{max(back):.2f}"]
        found.append(Grid("Devices given back.", ["", "n", "median", "most"], [row]))
    rows = [
        [
            str(run["seed"]), f"{told['lent']:.1f}", f"{told['used']:.1f}", str(told["reclaims"]), str(run["steps"]),
            str(run["lost"]), str(run["load_average"]), f"{run['stolen']:.1%}",
        ]
        for run in beside
        for told in [hours(run)]
    ]  # fmt: skip
    columns = ["seed", "device-hours lent", "with workers", "given back", "steps", "taken again", "load before"]
    return [*found, Grid("Each day with a job.", [*columns, "cores had by others"], rows)]


def _times(values: list[float]) -> list[str]:
    found = spread(values)
    return [str(found["n"]), f"{found['mean']:.3f} ± {confidence(found)[1]:.3f}"]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """By the name of their file: the first day with a job."""
    run = next((run for run in results["runs"] if run["way"] == BESIDE), None)
    if run is None:
        return {}
    figure, axes = plots.panels(3, 1, width=7.2, height=2.0, sharex=True, height_ratios=[2.2, 1, 1])
    (lanes,), (workers,), (steps,) = axes
    _devices(lanes, run, results["setting"])
    at = [sample["hour"] for sample in run["samples"]]
    workers.step(at, [sample["size"] for sample in run["samples"]], where="post", color=plots.COLOURS[0])
    workers.set(ylabel="workers that run", ylim=(0, None))
    taken = np.maximum.accumulate([sample["step"] or 0 for sample in run["samples"]])
    steps.plot(at, taken, color=plots.COLOURS[0])
    steps.set(ylabel="steps", xlabel="hour of the day", xlim=(0, 24), ylim=(0, None), xticks=range(0, 25, 3))
    length = results["question"]["length_s"]
    return {"tides.png": plots.caption(figure, f"a day in {length:g} s; seed {run['seed']}")}


def _devices(axis: Axes, run: Mapping[str, Any], setting: Mapping[str, Any]) -> None:
    """A lane for each device: what its owner needs, when it is lent, and when workers run there."""
    names = sorted(run["given_back"])
    ends = [*(sample["hour"] for sample in run["samples"][1:]), 24.0]
    for place, (name, owner) in enumerate(zip(names, run["owners"], strict=True)):
        low = len(names) - 1 - place
        for what, colour, height in (("lent", plots.COLOURS[2], LANE), ("occupied", plots.COLOURS[0], LANE / 4)):
            spans = [
                (sample["hour"], end - sample["hour"])
                for sample, end in zip(run["samples"], ends, strict=True)
                if name in sample[what]
            ]
            label = {"lent": "lent", "occupied": "workers run"}[what] if not place else None
            alpha = 0.25 if what == "lent" else 1.0
            axis.broken_barh(spans, (low, height), color=colour, alpha=alpha, linewidth=0, label=label)
        day = OwnerDay(owner["busiest_s"], tuple(tuple(each) for each in owner["bursts"]))
        hour = np.linspace(0, 24, 481)
        load = [low + LANE * day.load(each * HOUR_S) for each in hour]
        axis.plot(hour, load, color="#444444", linewidth=1.0, label=None if place else "what its owner needs")
    axis.set_yticks([low + LANE / 2 for low in range(len(names))], names[::-1])
    axis.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)


REPORT = Report(tables, pictures)
TIDES = Experiment(Question.of, measure, REPORT)
