"""What each waiting job is told: its place in the queue, why it is there, what it waits for, and until when about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ces_core.multi.jobs import WaitingJob
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
) -> tuple[Standing, ...]:
    """The queue in the order of ``lines``."""
    future = [(moment, outlook.cluster(outlook.use(moment, moment)).node_free) for moment in outlook.moments()]
    found = []
    for position, line in enumerate(lines, 1):
        job, reason = table.jobs[line], reasons[line]
        promise = kept.get(job.name)
        if promise is not None:
            start_s, held_by = promise.start_s, promise.waits_for
        else:
            moment = None if reason is not None and reason.permanent else _enough(job, future)
            start_s, held_by = (None if moment is None else seconds_of(moment)), ()
            if moment is not None and moment > outlook.now:
                held_by = outlook.ending_at(moment)
        found.append(Standing(job.name, position, scores.of(line), reason, promise is not None, start_s, held_by))
    return tuple(found)


def _enough(job: WaitingJob, future: Sequence[tuple[Moment, np.ndarray[Any, np.dtype[np.float64]]]]) -> Moment | None:
    """The first moment at which so much is free as the job's tasks ask for, together and each alone."""
    for moment, free in future:
        together = job.demand[: len(RESOURCES)] <= free.sum(axis=1) * (1 + SLACK)
        alone = job.largest <= free.max(axis=1, initial=0.0) * (1 + SLACK)
        if together.all() and alone.all():
            return moment
    return None
