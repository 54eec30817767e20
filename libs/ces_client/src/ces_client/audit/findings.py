"""What an audit finds."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = {
    "log": "the log has a gap, a repetition, or says two things",
    "step": "a step that there is not",
    "plan": "a plan that is not what the job asked for, or not what a node or link is for",
    "twice": "a task that was in two places at once",
    "overbooked": "more was held of a node, link or medium than plans may give away",
    "held": "something was not released",
    "promise": "a job started later than it was promised",
}


@dataclass(frozen=True)
class Finding:
    """``event``: the number of the event that shows it. ``kind``: one of KINDS."""

    event: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"event {self.event}: {self.text}"
