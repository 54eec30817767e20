"""Tables of games under growing weights of energy, and a picture: watts against everything else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ces_experiments.common import plots
from ces_experiments.common.command import Experiment
from ces_experiments.common.report import Report
from ces_experiments.common.results import Grid
from ces_experiments.common.spread import figure, gain, of
from ces_experiments.common.words import limit
from ces_experiments.latency.energy import Question, measure
from ces_experiments.latency.experiment import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WATTS = plots.Column("power_change_w", "watts that a game adds")
APART = 0.03
"""So much of the width must lie between weights that are written beside their points."""
TIME = plots.Column("time_score", "time score S_T")


def describe(question: Mapping[str, Any]) -> str:
    """What was asked, in a sentence's worth of words."""
    players, solver = words(question["players"]), question["solver"]
    return f"games of {players}, first seed {question['seed']}, {solver}, {limit(question)}"


def tables(results: Mapping[str, Any]) -> list[Grid]:
    """One for each network, a line for each weight."""
    question = results["question"]
    columns = {
        "watts added": of("power_change_w", figure, "mean", 2),
        "more than with the least weight": of("power_change_w_gain", gain, 1, 2),
        "load imbalance": of("load_imbalance", figure, "mean", 4),
        "more than with it": of("load_imbalance_gain", gain, 1, 4),
        "bandwidth satisfaction": of("bandwidth_satisfaction", figure, "mean", 3),
        "time score": of("time_score", figure, "mean", 3),
    }
    return [
        Grid.of(
            f"{network}: {found['placed_by_all']} of {found['games']} games, those with a plan under every weight; "
            f"{describe(question)}.",
            "weight of energy",
            columns,
            list(found["by_weight"].items()),
        )
        for network, found in results["networks"].items()
    ]


def pictures(results: Mapping[str, Any]) -> dict[str, Figure]:
    """Watts and the rest over the weight, and the front of watts against balance."""
    question, networks = results["question"], results["networks"]
    rows = (WATTS, plots.IMBALANCE, plots.SATISFACTION, TIME)
    titles = [f"{network}, {found['placed_by_all']} games" for network, found in networks.items()]
    picture, axes = plots.crossed(rows, titles, "weight of energy", sharey=False, width=3.8, height=2.1)
    style = plots.styles([question["solver"]])[question["solver"]]
    for line, column in zip(axes, rows, strict=True):
        for axis, found in zip(line, networks.values(), strict=True):
            column.line(axis, [(float(weight), each) for weight, each in found["by_weight"].items()], **style.look)
    text = f"{describe(question)};\nthe other weights share the rest in equal parts; bars: 95 % confidence of the mean"
    return {"weights.png": plots.caption(picture, text), "front.png": _front(results)}


def _front(results: Mapping[str, Any]) -> Figure:
    networks = results["networks"]
    titles = [f"{network}, {found['placed_by_all']} games" for network, found in networks.items()]
    picture, [axes] = plots.crossed([plots.IMBALANCE], titles, WATTS.label, sharey=False, width=4.2, height=3.6)
    look = plots.styles(["front"])["front"].look
    for axis, found in zip(axes, networks.values(), strict=True):
        points = [
            (each["power_change_w"]["mean"], each["load_imbalance"]["mean"], weight)
            for weight, each in found["by_weight"].items()
            if each["power_change_w"]["n"]
        ]
        axis.plot([watts for watts, *_ in points], [lack for _, lack, _ in points], **look)
        least, told = APART * (axis.get_xlim()[1] - axis.get_xlim()[0]), math.inf
        for watts, lack, weight in points:
            if abs(told - watts) >= least:
                axis.annotate(weight, (watts, lack), textcoords="offset points", xytext=(5, 4), fontsize=8)
                told = watts
    return plots.caption(picture, "beside each point: the weight of energy; further down and left is better")


REPORT = Report(tables, pictures)
ENERGY = Experiment(Question, measure, REPORT)
