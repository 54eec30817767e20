"""Scores of nodes from what their agents measured: the reference, when a measurement is noisy, and the levels that are
shown. Pure.

The levels are those of computing-aware traffic steering (CATS, IETF): raw metrics with their source (0), one number for
each category (1), one for all (2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final, get_args

from ces_common.application import WorkClass
from ces_common.messages.scores import (
    Category,
    CategoryScore,
    Kind,
    Measured,
    Measurement,
    NodeScores,
    RawScore,
)

REFERENCE_NUMBER: Final = 1
REFERENCE: Final[Mapping[Kind, float]] = {
    "integer": 16_000.0,
    "float": 2.0e8,
    "matrix": 1.2e11,
    "inference": 25_000.0,
    "memory": 2.0e10,
    "disk": 3.0e8,
    "network": 3.0e9,
}
"""Rates of one thread of the reference core, per second. They are frozen: a change is another table with another
number, since what was learned from scores would mean something else."""
UNITS: Final[Mapping[Kind, str]] = {
    "integer": "powers/s",
    "float": "terms/s",
    "matrix": "flop/s",
    "inference": "inferences/s",
    "memory": "byte/s",
    "disk": "byte/s",
    "network": "byte/s",
}
NOISY_SPREAD: Final = 0.05
"""More than this, and a measurement is noisy: of the median, between the slowest and the fastest repeat."""
NOISY_OTHERS: Final = 0.1
"""So is one during which others used more than this share of the machine's whole CPU: a load that is even makes every
repeat equally slow."""
MOST: Final = 10.0
"""The highest level."""
_MIDDLE: Final = 5.0  # the level of the reference core
_CPU: Final[Sequence[Kind]] = ("integer", "float", "matrix", "inference")
CLASSES: Final[tuple[WorkClass, ...]] = get_args(WorkClass)
_OF: Final[Mapping[Category, Sequence[Kind]]] = {
    "computing": _CPU,
    "core": _CPU,
    "memory": ["memory"],
    "storage": ["disk"],
    "communication": ["network"],
}
_WEIGHTS: Final[Mapping[Category, float]] = {
    "computing": 0.5,
    "core": 0.2,
    "memory": 0.1,
    "storage": 0.1,
    "communication": 0.1,
}


def spread_of(rates: Sequence[float]) -> float:
    """Between the fastest and the slowest, as a share of the median. Rates are positive."""
    return (max(rates) - min(rates)) / median(rates)


def is_noisy(measurement: Measurement) -> bool:
    return spread_of(measurement.rates) > NOISY_SPREAD or (measurement.others or 0.0) > NOISY_OTHERS


def score_of(measurement: Measurement) -> float:
    """In rates of one thread of the reference core."""
    return median(measurement.rates) / REFERENCE[measurement.kind]


def speed_of(measurement: Measurement) -> float | None:
    """Of a core while it works: the work for each second of CPU time, in rates of one thread of the reference core."""
    return None if measurement.per_cpu_s is None else measurement.per_cpu_s / REFERENCE[measurement.kind]


def scores_of(measured: Measured) -> NodeScores:
    """All levels of what a node told."""
    categories = [found for each in _OF if (found := _category(each, measured.measurements)) is not None]
    noisy = any(each.noisy for each in categories if each.category in ("computing", "core"))
    return NodeScores(
        at=measured.at,
        reference=REFERENCE_NUMBER,
        level=level_of({each.category: each.score for each in categories}),
        noisy=noisy,
        categories=categories,
        raw=[_raw(each) for each in measured.measurements],
    )


def speeds_of(measured: Measured) -> dict[str, float]:
    """Class of work -> the score of one thread, on the slowest type of core: nobody says on which a worker runs."""
    found: dict[str, float] = {}
    for each in measured.measurements:
        if each.threads == 1 and each.kind in CLASSES:
            found[each.kind] = min(score_of(each), found.get(each.kind, math.inf))
    return found


def level_of(scores: Mapping[Category, float]) -> float | None:
    """Level 2: 5 for the reference core, and one more or less for twice or half as much, from 0 to 10, with one
    decimal. Categories count by their weights, of which those that are absent have none. None where nothing of the CPU
    is known."""
    if not {"computing", "core"} & scores.keys():
        return None
    total = sum(_WEIGHTS[each] for each in scores)
    doublings = sum(_WEIGHTS[each] * math.log2(score) for each, score in scores.items()) / total
    return round(min(max(_MIDDLE + doublings, 0.0), MOST), 1)


def _category(category: Category, measurements: Sequence[Measurement]) -> CategoryScore | None:
    chosen = [each for kind in _OF[category] if (each := _chosen(category, kind, measurements)) is not None]
    if not chosen:
        return None
    return CategoryScore(
        category=category,
        score=math.exp(sum(math.log(score_of(each)) for each in chosen) / len(chosen)),
        noisy=any(is_noisy(each) for each in chosen),
        kinds=[each.kind for each in chosen],
    )


def _chosen(category: Category, kind: Kind, measurements: Sequence[Measurement]) -> Measurement | None:
    """Of a kind: for ``core`` the fastest one thread, else that with most threads, and of those the fastest."""
    some = [each for each in measurements if each.kind == kind and (category != "core" or each.threads == 1)]
    return max(some, key=lambda each: (each.threads, median(each.rates)), default=None)


def _raw(measurement: Measurement) -> RawScore:
    return RawScore(
        kind=measurement.kind,
        threads=measurement.threads,
        cores=measurement.cores,
        rate=median(measurement.rates),
        unit=UNITS[measurement.kind],
        spread=spread_of(measurement.rates),
        others=measurement.others,
        noisy=is_noisy(measurement),
        score=score_of(measurement),
        speed=speed_of(measurement),
        source=measurement.source,
    )
