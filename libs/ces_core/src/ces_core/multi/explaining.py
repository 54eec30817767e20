"""What each waiting job is told: its place in the queue, why it is there, what it waits for, and until when about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ces_core.multi.outlook import Moment, Outlook, seconds_of
from ces_core.multi.reservations import Reservation
from ces_core.multi.scoring import Score, Scores, Table
from ces_core.problem import RESOURCES, SLACK
from ces_core.reason import FormatQuantity, Reason, plain


@dataclass(frozen=True)
class Standing:
    """A job that goes on waiting.

    ``position`` from 1. ``reason``: what stands in its way now; None where it has not been its turn to be tried.
    ``reserved``: room is kept for it. ``start_s``: when it is expected to start, as far as running jobs have said when
    they end: with room kept no later than this; without, no earlier, since others may come before. None where nobody
    knows. ``held_by``: running jobs that it waits for until then.
    """

    job: str
    position: int
    score: Score
    reason: Reason | None
    reserved: bool
    start_s: float | None
    held_by: tuple[str, ...]

    def text(self, format_quantity: FormatQuantity = plain) -> str:
        """One sentence for people; whoever shows it brings the units and the time of day."""
        text = "has not been tried: others come first" if self.reason is None else self.reason.text(format_quantity)
        if self.held_by:
            text += f"; held by {', '.join(self.held_by)}"
        return f"{text}; room is kept for it" if self.reserved else text

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        told = asdict(self) | {"reason": None if self.reason is None else self.reason.to_dict()}
        return told | {"score": asdict(self.score) | {"total": self.score.total}}


def standings(
    table: Table,
    lines: Sequence[int],
    scores: Scores,
    reasons: Mapping[int, Reason | None],
    kept: Mapping[str, Reservation],
    outlook: Outlook,
    *,
    firm: bool,
) -> tuple[Standing, ...]:
    """The queue in the order of ``lines``. ``firm``: nobody more urgent may take room that is kept for another."""
    expected, ending = _enough(table, outlook), outlook.ending()
    found = []
    for position, line in enumerate(lines, 1):
        job, reason = table.jobs[line], reasons[line]
        promise = kept.get(job.name)
        if promise is not None:
            start_s, held_by = promise.start_s, promise.waits_for
        else:
            moment = None if reason is not None and reason.permanent else expected[line]
            start_s, held_by = (None if moment is None else seconds_of(moment)), ()
            if moment is not None and moment > outlook.now:
                held_by = ending.get(moment, ())
        reserved = promise is not None and (firm or promise.preempted is not None)
        found.append(Standing(job.name, position, scores.of(line), reason, reserved, start_s, held_by))
    return tuple(found)


def _enough(table: Table, outlook: Outlook) -> list[Moment | None]:
    """For each job the first moment at which so much is free as its tasks ask for, together and each alone."""
    course = [(moment, outlook.cluster(use).node_free) for moment, use in outlook.course()]
    total = np.array([free.sum(axis=1) for _, free in course]) * (1 + SLACK)
    most = np.array([free.max(axis=1, initial=0.0) for _, free in course]) * (1 + SLACK)
    enough = np.ones((len(table.jobs), len(course)), dtype=np.bool_)
    for row in range(len(RESOURCES)):
        enough &= table.demand[:, row, None] <= total[None, :, row]
        enough &= table.largest[:, row, None] <= most[None, :, row]
    first = enough.argmax(axis=1).tolist()
    return [course[step][0] if enough[line, step] else None for line, step in enumerate(first)]
