"""Speeds that were measured, each predicted from three or two others of the same profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any, Final

import typer
from rich.progress import Progress

from ces_core.malleable.model import SpeedProfile
from ces_core.malleable.speed import POWER, Measurement, SpeedModel, fitted
from ces_experiments.common.command import Experiment
from ces_experiments.common.console import told
from ces_experiments.common.report import Found, Report
from ces_experiments.common.results import Grid
from ces_sim.malleable.traces import TraceError, read_speeds

KNOWN: Final = (3, 2)
NEAR: Final = 0.15
"""Of the measured speed: what a prediction may be off by."""
PLACES: Final = ("smaller", "between", "larger")


@dataclass(frozen=True)
class Question:
    gpus: tuple[str, ...]

    @staticmethod
    def of(gpus: tuple[str, ...]) -> Question:
        """Raises typer.BadParameter."""
        for gpu in gpus:
            try:
                read_speeds(gpu)
            except TraceError as error:
                raise typer.BadParameter(str(error), param_hint="--gpus") from error
        return Question(gpus)


@dataclass(frozen=True)
class Case:
    """``known``: size -> iterations/s; ``size``, ``rate``: another one, to be predicted."""

    known: Mapping[int, float]
    size: int
    rate: float

    @property
    def place(self) -> str:
        below, above = self.size < min(self.known), self.size > max(self.known)
        return PLACES[0 if below else 2 if above else 1]

    def error(self, model: SpeedModel) -> float:
        return abs(model.rate(self.size) / self.rate - 1)

    def fitted(self) -> SpeedModel:
        return fitted([Measurement(size, rate) for size, rate in self.known.items()])

    def assumed(self) -> SpeedModel:
        """n^0.8 through the measurement that is next to the size, the smaller of two."""
        near = min(self.known, key=lambda size: (max(size, self.size) / min(size, self.size), size))
        return fitted([Measurement(near, self.known[near])], POWER)


def cases(gpu: str, known: int) -> Iterator[Case]:
    """Of every profile all sets of this many sizes and one more, each of which is left out once. Raises TraceError."""
    for rates in read_speeds(gpu).values():
        profile = SpeedProfile.of(rates)
        for chosen in combinations(profile.sizes, known + 1):
            for size in chosen:
                yield Case({each: profile.rate(each) for each in chosen if each != size}, size, profile.rate(size))


def measure(question: Question, progress: Progress) -> Found:
    """By type of GPU, number of sizes known, and where the other one lies: how many predictions are near."""
    step = told(progress, len(question.gpus) * len(KNOWN))
    found: list[dict[str, Any]] = []
    for gpu in question.gpus:
        for known in KNOWN:
            step(f"{gpu}, {known} known")
            all_of = list(cases(gpu, known))
            parts = {"any": all_of} | {place: [each for each in all_of if each.place == place] for place in PLACES}
            found += [{"gpu": gpu, "known": known, "place": name} | _figures(of) for name, of in parts.items() if of]
    return Found({"question": {"gpus": list(question.gpus)}, "parts": found})


def _figures(part: list[Case]) -> dict[str, Any]:
    errors = {
        "fitted": [each.error(each.fitted()) for each in part],
        "assumed": [each.error(each.assumed()) for each in part],
    }
    shares = {f"{name}_near": sum(error <= NEAR for error in of) / len(of) for name, of in errors.items()}
    return {"cases": len(part), **shares, **{f"{name}_median": median(of) for name, of in errors.items()}}


def tables(results: Mapping[str, Any]) -> list[Grid]:
    rows = [
        [
            each["gpu"], str(each["known"]), each["place"], str(each["cases"]), f"{each['fitted_near']:.1%}",
            f"{each['fitted_median']:.1%}", f"{each['assumed_near']:.1%}", f"{each['assumed_median']:.1%}",
        ]
        for each in results["parts"]
    ]  # fmt: skip
    figures = [f"within {NEAR:.0%}", "median error", f"n^0.8: within {NEAR:.0%}", "n^0.8: median error"]
    title = "The speed at a size, predicted from others of the same profile, by where it lies to these."
    return [Grid(title, ["GPU", "known", "the size is", "cases", *figures], rows)]


REPORT = Report(tables)
SPEEDS = Experiment(Question.of, measure, REPORT)
