"""What requests of an application take: by the model with a bar for each part, and as their users measured it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ces_client.view.formats import DASH, number
from ces_client.view.tables import plain_table
from ces_common.messages.api import TaskView
from ces_common.messages.request_times import RequestTime

WIDTH: Final = 40  # characters of the longest bar
NEVER: Final = "never ends"
REPORTED: Final = "requests"  # key of a line of progress


@dataclass(frozen=True)
class Measured:
    """What the sender of a class of requests has reported last: percentiles in ms of its latest answers, how many came
    in all, how many of these after their deadline, and how many requests got none."""

    p50: float | None
    p95: float | None
    p99: float | None
    answers: int
    late: int
    lost: int

    @property
    def text(self) -> str:
        """``measured: p50 41 ms, p95 55 ms, p99 61 ms; 1203 answers, 12 late (1.0 %)``."""
        parts = (("p50", self.p50), ("p95", self.p95), ("p99", self.p99))
        told = ", ".join(f"{name} {_ms(value)}" for name, value in parts if value is not None) or "nothing yet"
        share = f" ({self.late / self.answers:.1%})" if self.answers and self.late else ""
        lost = f", {self.lost} without an answer" if self.lost else ""
        return f"measured: {told}; {self.answers} answers, {self.late} late{share}{lost}"


def measured_requests(tasks: Iterable[TaskView]) -> dict[str, Measured]:
    """Class of requests -> what was measured of it, from the last lines of progress; whoever reports none has none."""
    found = {}
    for task in tasks:
        line: Any = task.progress or {}
        content = line.get("result") or line.get("progress", line)
        told = content.get(REPORTED) if isinstance(content, dict) else None
        for name, values in told.items() if isinstance(told, dict) else ():
            if isinstance(values, dict):
                found[str(name)] = _measured(values)
    return found


def _measured(values: Mapping[str, Any]) -> Measured:
    p50, p95, p99 = (number(values.get(f"{name}_ms")) for name in ("p50", "p95", "p99"))
    answers, late, lost = (int(number(values.get(name)) or 0) for name in ("answers", "late", "lost"))
    return Measured(p50, p95, p99, answers, late, lost)


def request_times(requests: Sequence[RequestTime], measured: Mapping[str, Measured] | None = None) -> RenderableType:
    """A table for each class of requests: one line for each part, drawn after the one before, up to the deadline.
    ``measured``: by class; None in a dry run, where nothing runs."""
    parts: list[RenderableType] = []
    for each in requests:
        if parts:
            parts.append(Text())
        parts += [_head(each), _steps(each)]
        if measured is not None:
            told = measured.get(each.name)
            parts.append(Text("measured: nothing reported yet" if told is None else told.text, style="dim"))
    return Group(*parts)


def _head(request: RequestTime) -> Text:
    """``loop: 44 ms of 60 ms (hard)``."""
    took = NEVER if request.time_ms is None else _ms(request.time_ms)
    text = Text.assemble((f"{request.name}: ", "bold"), took)
    if request.deadline_ms is None:
        return text
    met = request.time_ms is not None and request.time_ms <= request.deadline_ms
    text.append(f" of {_ms(request.deadline_ms)}", style="green" if met else "bold red")
    return text.append(" (hard)" if request.hard else "" if met else ", missed")


def _steps(request: RequestTime) -> Table:
    table = plain_table("PART", "TAKES", "WHEN", right=("TAKES",), wrapped=())
    whole = max(request.time_ms or 0.0, request.deadline_ms or 0.0, *(step.ms or 0.0 for step in request.steps), 1e-9)
    longest = max((step.ms for step in request.steps if step.ms is not None), default=0.0)
    begun = 0.0
    for step in request.steps:
        if step.ms is None:
            table.add_row(step.what, NEVER, DASH)
            continue
        style = "yellow" if step.ms == longest else "cyan"
        table.add_row(step.what, _ms(step.ms), Text(_bar(begun, step.ms, whole), style=style))
        begun += step.ms
    return table


def _bar(begun: float, took: float, whole: float) -> str:
    first = min(WIDTH - 1, math.floor(WIDTH * begun / whole))
    length = max(1, round(WIDTH * took / whole)) if took else 0
    return " " * first + "█" * min(length, WIDTH - first)


def _ms(value: float) -> str:
    return f"{value:.4g} ms"
