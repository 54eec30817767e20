"""By when a job is to have ended, as its file says, and what becomes of it where that cannot be."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BeforeValidator, WithJsonSchema, field_validator, model_validator

from ces_common.fields import Document
from ces_common.quantities import Duration, format_duration, parse_duration

LATEST = 3650 * 86400  # seconds after submission: a date can still be worked out from it
DeadlinePolicy = Literal["refuse", "best-effort"]
_TIME = re.compile(r"\s*\d{4}-\d\d")
_TEXT = {"type": "string", "examples": ["2h", "2027-03-01T18:00:00Z"]}


def _written_out(value: Any) -> Any:
    """A duration or a time alone, as a mapping."""
    if isinstance(value, dict | Deadline) or value is None:
        return value
    if isinstance(value, date) or (isinstance(value, str) and _TIME.match(value)):
        return {"at": value}
    if isinstance(value, str):
        try:
            parse_duration(value)
        except ValueError as error:
            raise ValueError(f"{value!r} is neither a duration like 2h nor a time like 2030-01-01T12:00:00Z") from error
    return {"within": value}


def _as_text(value: Any) -> Any:
    """A number of seconds is a duration, and no time."""
    if isinstance(value, int | float) or (isinstance(value, date) and not isinstance(value, datetime)):
        raise ValueError("must be a time with its time zone, like 2030-01-01T12:00:00Z; write a duration as within: 2h")
    return value


class Deadline(Document):
    """``within``: seconds from submission. ``policy``: whether a job that cannot end in time is refused, or is late."""

    within: Duration | None = None
    at: Annotated[AwareDatetime, BeforeValidator(_as_text)] | None = None
    policy: DeadlinePolicy = "refuse"

    @field_validator("within")
    @classmethod
    def _bounded(cls, value: int | None) -> int | None:
        if value is not None and not 0 < value <= LATEST:
            raise ValueError(f"must be more than zero, and {format_duration(LATEST)} at most")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.within is None) == (self.at is None):
            raise ValueError("give within: a duration after submission, or at: a time with its zone")
        return self

    def due_at(self, submitted_at: datetime) -> datetime:
        """The deadline of a job that was submitted then. Raises ValueError for one that is past or too far ahead."""
        after = timedelta(seconds=self.within or 0) if self.at is None else self.at - submitted_at
        if not timedelta() < after <= timedelta(seconds=LATEST):
            what = "is past: give a later time"
            if after > timedelta():
                what = f"is more than {format_duration(LATEST)} ahead: give an earlier time"
            raise ValueError(f"{what}, or a duration like 2h")
        return submitted_at + after


JobDeadline = Annotated[
    Deadline,
    BeforeValidator(_written_out),
    WithJsonSchema(
        {
            "anyOf": [
                _TEXT,
                {
                    "type": "object",
                    "properties": {
                        "within": {"type": "string", "examples": ["2h"]},
                        "at": {"type": "string", "format": "date-time"},
                        "policy": {"enum": ["refuse", "best-effort"], "default": "refuse"},
                    },
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
"""A deadline as a job file gives it: in full, or a duration or a time alone."""
