"""What workers said of their progress, as curves: the numbers in their lines, in memory only. A curve that grows too
long loses every second point, so that it always covers the whole run."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ces_common.messages.dashboard import ProgressCurve

MAX_POINTS: Final = 200  # of one task
MAX_FIELDS: Final = 8
MAX_CURVES: Final = 4_000  # tasks: those that said something last
LONGEST_FIELD: Final = 64  # characters
KEEP: Final = timedelta(hours=1)


class _Curve:
    def __init__(self) -> None:
        self.at = array("d")
        self.values: dict[str, array[float]] = {}  # of single precision: they are drawn
        self._step = 1  # one line of this many is kept
        self._skipped = 0

    def add(self, at: float, numbers: Mapping[str, float]) -> None:
        self._skipped += 1
        if self._skipped < self._step:
            return
        self._skipped = 0
        for name in numbers:
            if name not in self.values and len(self.values) < MAX_FIELDS:
                self.values[name] = array("f", [math.nan] * len(self.at))
        self.at.append(at)
        for name, series in self.values.items():
            series.append(numbers.get(name, math.nan))
        if len(self.at) > MAX_POINTS:
            del self.at[1::2]
            for series in self.values.values():
                del series[1::2]
            self._step *= 2

    def view(self) -> ProgressCurve:
        return ProgressCurve(
            at=[datetime.fromtimestamp(at, UTC) for at in self.at],
            values={
                name: [None if math.isnan(value) else value for value in series] for name, series in self.values.items()
            },
        )


class ProgressHistory:
    def __init__(self) -> None:
        self._curves: dict[tuple[str, str], _Curve] = {}  # job and task, in the order in which they spoke last

    def heard(self, job: str, task: str, data: Mapping[str, Any], now: datetime) -> None:
        numbers = {name: float(value) for name, value in data.items() if _drawn(name, value)}
        if not numbers:
            return
        curve = self._curves.pop((job, task), None) or _Curve()
        self._curves[job, task] = curve
        curve.add(now.timestamp(), numbers)
        if len(self._curves) > MAX_CURVES:
            del self._curves[next(iter(self._curves))]

    def forget_old(self, now: datetime) -> None:
        oldest = (now - KEEP).timestamp()
        self._curves = {key: curve for key, curve in self._curves.items() if curve.at[-1] >= oldest}

    def of_job(self, job: str) -> dict[str, ProgressCurve]:
        """Its tasks' curves."""
        return {task: curve.view() for (of, task), curve in self._curves.items() if of == job}


def _drawn(name: str, value: Any) -> bool:
    """Whether it is a number that a curve may have."""
    if len(name) > LONGEST_FIELD or isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < 1e30  # an integer may be too large for any float
