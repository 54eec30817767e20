"""Runs of the same seeds, each in several ways: in which order they come, and what can be compared of them. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ces_common.states import JobState

Run = Mapping[str, Any]
"""A run's ``seed``, ``way`` and ``jobs``; of each job its ``name``, ``fate`` and ``took_s``."""


def in_order(seed: int, ways: Sequence[str]) -> list[str]:
    """The ways in the order that the seed draws, so that what changes on the machine over time favours none."""
    return random.Random(seed).sample(ways, len(ways))


def by_way(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """In the order in which the ways first came."""
    return {way: [run for run in runs if run["way"] == way] for way in dict.fromkeys(run["way"] for run in runs)}


def pairs(runs: Sequence[Run], one: str, other: str) -> list[tuple[Run, Run]]:
    """Runs of the same seed in two ways, where both were made."""
    by = {(run["seed"], run["way"]): run for run in runs}
    seeds = dict.fromkeys(run["seed"] for run in runs)
    return [(by[seed, one], by[seed, other]) for seed in seeds if (seed, one) in by and (seed, other) in by]


def in_both(one: Run, other: Run) -> list[tuple[float, float]]:
    """The seconds that jobs took which succeeded in both runs."""
    first, second = ({job["name"]: job["took_s"] for job in succeeded(run)} for run in (one, other))
    return [(first[name], second[name]) for name in first if name in second]


def succeeded(run: Run) -> list[Mapping[str, Any]]:
    return [job for job in run["jobs"] if job["fate"] == JobState.SUCCEEDED]


def moment(event: Mapping[str, Any]) -> float:
    """When an event of the log happened, in seconds since 1970."""
    return datetime.fromisoformat(event["time"]).timestamp()
