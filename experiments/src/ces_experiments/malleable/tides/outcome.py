"""What became of a day: of its owners' work, of what their devices did meanwhile, of the job. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ces_experiments.common.ways import pairs
from ces_experiments.malleable.tides.watch import Watch
from ces_sim.malleable.availability import DAY_S

ALONE, BESIDE = "alone", "beside"
"""The owners' work alone, and beside a job."""
WARM_UP_S = 3600.0  # of the day: programs that start, and a job that is placed

Pieces = Sequence[tuple[float, float]]
"""Of an owner's work: when each was due, in seconds of the day, and how many of the clock later it was done."""


def record(watch: Watch, pieces: Sequence[Pieces], length_s: float) -> dict[str, Any]:
    """One day, for ``results.json``; times of samples in hours. ``steps``: that the job took; ``lost``: of them, those
    that it took again. ``given_back``: seconds from frozen workers to none, by device."""
    hour = length_s / 24
    samples = [
        each | {"at_s": round(each["at_s"] / hour, 3)} for each in watch.samples if 0 <= each["at_s"] <= length_s
    ]
    told = [each["step"] for each in samples if each.get("step") is not None]
    return {
        "samples": [{"hour": each.pop("at_s"), **each} for each in samples],
        "pieces_ms": [_milliseconds(each) for each in pieces],
        "given_back": {device.name: device.given_back for device in watch.devices},
        "steps": max(told, default=0),
        "lost": sum(max(0, before - after) for before, after in pairwise(told)),
    }


def _milliseconds(pieces: Pieces) -> dict[str, Any]:
    """Percentiles of what an owner's pieces took."""
    took = np.array([1000 * took_s for time_s, took_s in pieces if WARM_UP_S <= time_s < DAY_S])
    p50, p95 = np.percentile(took, (50, 95)).tolist()
    return {"n": len(took), "p50": p50, "p95": p95}


def owners_ms(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By way, over all owners and seeds: pieces, and the mean of the owners' percentiles."""
    found = {}
    for way in (ALONE, BESIDE):
        every = [each for run in runs if run["way"] == way for each in run["pieces_ms"]]
        if every:
            means = {key: float(np.mean([each[key] for each in every])) for key in ("p50", "p95")}
            found[way] = {"n": sum(each["n"] for each in every), **means}
    return found


def ratios(runs: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """How many times as long a percentile is beside a job as it is alone, owner by owner of the same day."""
    return [
        beside[key] / alone[key]
        for one, other in pairs(runs, BESIDE, ALONE)
        for beside, alone in zip(one["pieces_ms"], other["pieces_ms"], strict=True)
    ]


def hours(run: Mapping[str, Any]) -> dict[str, float]:
    """Device-hours of the day that were lent, and of those, how many had workers; and how often devices were given
    back while workers ran."""
    lent = used = 0.0
    for sample, later in pairwise(run["samples"]):
        hour = later["hour"] - sample["hour"]
        lent += hour * len(sample["lent"])
        used += hour * len(set(sample["occupied"]) & set(sample["lent"]))
    return {"lent": lent, "used": used, "reclaims": sum(len(each) for each in run["given_back"].values())}
