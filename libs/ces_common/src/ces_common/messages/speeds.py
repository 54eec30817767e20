"""How fast malleable jobs are, as the manager keeps it and the scheduler tells it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from ces_common.elastic import LARGEST_SIZE, MOST_WORK, Rate, Size
from ces_common.messages.base import Message
from ces_common.messages.bounds import Id, Small

MATERIAL: Final = 0.05
"""A change by no more than this is not kept: of a speed; of the steps left, or done where the file gives no total."""
READ_S: Final = 30.0
"""Between two readings of one job's steps."""
MOST_LOAD_S: Final = 86400.0
"""The longest time from running to the first step that is counted, in seconds."""
Step = Annotated[int, Field(ge=0, le=MOST_WORK)]


class SizeSpeed(Message):
    """``rate``: units/s, the newest measurements counting most; ``at``: when it was last measured."""

    rate: Rate
    at: datetime


class JobSpeeds(Message):
    """What was measured of a malleable job by its first task's lines of progress. ``step``: the last that it has told,
    in start ``incarnation`` of ``attempt``; ``sizes``: the speed at each size that it has run at; ``load_s``: seconds
    from running to the first step, in the last start in which that was seen."""

    step: Step
    attempt: Small
    incarnation: Small
    at: datetime
    sizes: Annotated[dict[Size, SizeSpeed], Field(max_length=LARGEST_SIZE)] = {}
    load_s: Annotated[float, Field(ge=0, le=MOST_LOAD_S)] | None = None


class SpeedQuery(Message):
    """Ask the scheduler how fast it takes a malleable job to be."""

    job: Id


class SpeedAnswer(Message):
    """Units/s at the job's size and those next to it; empty where nothing says how fast it is."""

    rates: Annotated[dict[Size, Rate], Field(max_length=3)] = {}
