"""Jobs over time: drawn at random, or as a trace has them."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ces_core.model.errors import ProblemError
from ces_core.model.generate import random_instance
from ces_core.model.parts import Flow, Task
from ces_core.queue.parameters import DEFAULT_TENANT
from ces_sim.rounds import derived_seed


@dataclass(frozen=True)
class TimedJob:
    """A job with the moment it arrives and how long it runs once it has a place, both in seconds.

    ``priority`` (0 to 100), ``tenant`` and ``expected_s``, how long it says it will run (None: it does not), are for
    policies that go by them.
    """

    name: str
    arrival_s: float
    duration_s: float
    tasks: tuple[Task, ...]
    flows: tuple[Flow, ...]
    priority: int = 50
    tenant: str = DEFAULT_TENANT
    expected_s: float | None = None


def poisson(
    count: int, rate: float, mean_duration_s: float, tasks: Sequence[int], seed: int, *, regime: str = "thesis"
) -> list[TimedJob]:
    """``count`` jobs, ``rate`` of them per second on average: exponential gaps and durations, sizes out of ``tasks``
    with equal chances, demands as in the regimes."""
    rng = np.random.default_rng(derived_seed(seed, 0))
    arrivals = np.cumsum(rng.exponential(1 / rate, count))
    durations = rng.exponential(mean_duration_s, count)
    sizes = rng.choice(np.asarray(tasks), count)
    return [
        _job(i, float(arrivals[i]), float(durations[i]), int(sizes[i]), derived_seed(seed, 1, i), regime)
        for i in range(count)
    ]


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "arrival_s": ("arrival_s", "submission_time", "submit_time"),
    "duration_s": ("duration_s", "duration"),
    "tasks": ("tasks", "num_gpu"),
}
"""What a trace must say, and the names it may have for it: our own first, then those of published traces, where a job's
GPUs stand for its tasks."""


def from_trace(
    file: Path, seed: int, *, limit: int | None = None, largest: int | None = None, regime: str = "thesis"
) -> list[TimedJob]:
    """The jobs of a CSV file with a heading, by arrival, the first at 0; at most ``limit`` of them.

    Arrival, duration and number of tasks come from the file (``largest`` bounds the number), demands and flows are
    drawn as in the regimes. Raises ProblemError, naming the column and row.
    """
    try:
        with file.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            columns = {what: _column(what, reader.fieldnames or ()) for what in COLUMNS}
            rows = [
                tuple(_number(f"row {reader.line_num}, {column}", row[column]) for column in columns.values())
                for row in reader
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProblemError("trace", f"{file} cannot be read: {error}") from error
    if not rows:
        raise ProblemError("trace", f"{file} holds no job")
    rows.sort()
    first = rows[0][0]
    jobs = []
    for i, (arrival, duration, tasks) in enumerate(rows[:limit]):
        size = max(1, round(tasks) if largest is None else min(round(tasks), largest))
        jobs.append(_job(i, arrival - first, duration, size, derived_seed(seed, 1, i), regime))
    return jobs


def unread_columns(file: Path) -> list[str]:
    """The columns of a trace of which :func:`from_trace` makes nothing. Raises OSError."""
    with file.open(encoding="utf-8", newline="") as stream:
        present = csv.DictReader(stream).fieldnames or ()
    read = {_column(what, present) for what in COLUMNS}
    return [name for name in present if name not in read]


def _column(what: str, present: Iterable[str]) -> str:
    found = next((name for name in COLUMNS[what] if name in set(present)), None)
    if found is None:
        raise ProblemError(f"trace.{what}", f"no such column; it may be called {', '.join(COLUMNS[what])}")
    return found


def _number(where: str, text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise ProblemError(f"trace.{where}", f"must be a number from 0 on, not {text!r}")
    return value


def _job(index: int, arrival_s: float, duration_s: float, tasks: int, seed: int, regime: str) -> TimedJob:
    drawn = random_instance(regime, seed, nodes=1, tasks=tasks)["job"]
    return TimedJob(
        f"j{index}",
        arrival_s,
        duration_s,
        tuple(Task(**task) for task in drawn["tasks"]),
        tuple(Flow(**flow) for flow in drawn["flows"]),
    )
