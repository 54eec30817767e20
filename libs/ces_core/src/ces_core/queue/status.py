"""The queue status of each waiting job: its position, why it waits, for whom, and until about when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ces_core.model.problem import RESOURCES, SLACK
from ces_core.model.reason import FormatQuantity, Reason, plain
from ces_core.queue.outlook import Moment, Outlook, seconds_of
from ces_core.queue.reservations import Reservation
from ces_core.queue.scores import Score, Scores, Table


@dataclass(frozen=True)
class QueueStatus:
    """The status of a job that goes on waiting.

    ``position`` counts from 1. ``reason``: what prevents its start now; None if it has not been tried. ``reserved``: it
    has a reservation. ``start_s``: its expected start from running jobs' stated run times: with a reservation, no later
    than this; without, no earlier, since other jobs may go first. None if unknown. ``held_by``: the running jobs it
    waits for until then.
    """

    job: str
    position: int
    score: Score
    reason: Reason | None
    reserved: bool
    start_s: float | None
    held_by: tuple[str, ...]

    def text(self, format_quantity: FormatQuantity = plain) -> str:
        """One sentence for people; the caller brings the units and the time of day."""
        text = "has not been tried: others come first" if self.reason is None else self.reason.text(format_quantity)
        if self.held_by:
            text += f"; held by {', '.join(self.held_by)}"
        return f"{text}; room is kept for it" if self.reserved else text

    def to_dict(self) -> dict[str, Any]:
        """The status as a JSON object."""
        fields = asdict(self) | {"reason": None if self.reason is None else self.reason.to_dict()}
        return fields | {"score": asdict(self.score) | {"total": self.score.total}}


def queue_statuses(
    table: Table,
    lines: Sequence[int],
    scores: Scores,
    reasons: Mapping[int, Reason | None],
    kept: Mapping[str, Reservation],
    outlook: Outlook,
    *,
    firm: bool,
) -> tuple[QueueStatus, ...]:
    """The status of each job, in the order of ``lines``. ``firm``: no more urgent job may take reserved capacity."""
    expected, ending = _enough(table, outlook), outlook.ending()
    found = []
    for position, line in enumerate(lines, 1):
        job, reason = table.jobs[line], reasons[line]
        reservation = kept.get(job.name)
        if reservation is not None:
            start_s, held_by = reservation.start_s, reservation.waits_for
        else:
            moment = None if reason is not None and reason.permanent else expected[line]
            start_s, held_by = (None if moment is None else seconds_of(moment)), ()
            if moment is not None and moment > outlook.now:
                held_by = ending.get(moment, ())
        reserved = reservation is not None and (firm or reservation.preempted is not None)
        found.append(QueueStatus(job.name, position, scores.of(line), reason, reserved, start_s, held_by))
    return tuple(found)


def _enough(table: Table, outlook: Outlook) -> list[Moment | None]:
    """Per job, the first moment at which its total demand and each single task's are free."""
    course = [(moment, outlook.cluster(use).node_free) for moment, use in outlook.course()]
    total = np.array([free.sum(axis=1) for _, free in course]) * (1 + SLACK)
    most = np.array([free.max(axis=1, initial=0.0) for _, free in course]) * (1 + SLACK)
    enough = np.ones((len(table.jobs), len(course)), dtype=np.bool_)
    for row in range(len(RESOURCES)):
        enough &= table.demand[:, row, None] <= total[None, :, row]
        enough &= table.largest[:, row, None] <= most[None, :, row]
    first = enough.argmax(axis=1).tolist()
    return [course[step][0] if enough[line, step] else None for line, step in enumerate(first)]
