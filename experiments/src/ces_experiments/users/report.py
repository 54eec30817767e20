"""Tables of a city's users who get their answers in time, and a picture: how many, as more and more come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure, gain, of, percent
from ces_experiments.common.words import limit
from ces_experiments.users.experiment import Question, measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    cities, seed = question["seeds"], question["seed"]
    return f"{cities} draws of the city, {question['users']} users each, first seed {seed}, {limit(question)}"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One line for each way of placing."""
    question, ways = results["question"], results["ways"]
    columns = {
        "in time %": of("in_time", percent),
        f"{question['solver']} serves more, points": of("less", gain, 100, 1),
        "late %": of("late", percent),
        "placed %": of("placed", percent),
        "of the deadline, where in time": of("part", figure, "mean", 2),
    }
    return [Grid.of(f"Users whose answers come in time: {describe(question)}.", "way", columns, list(ways.items()))]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Users served in time over users who came."""
    ways = results["ways"]
    picture, [[axis]] = plots.panels(1, 1, width=6.0, height=4.0)
    for name, style in plots.styles(list(ways)).items():
        points = [(float(n), found) for n, found in ways[name]["after"].items()]
        plots.curve(axis, points, 1.0, label=name, **style.look)
    axis.set_xlabel("users who have come")
    axis.set_ylabel("of them with answers in time")
    plots.legend_outside(picture, axis)
    text = f"{describe(results['question'])};\nbars: 95 % confidence of the mean"
    return {"users.png": plots.caption(picture, text)}


REPORT = Report(tables, pictures)
USERS = Experiment(Question, measure, REPORT)
