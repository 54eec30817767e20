"""What regions hold for each other, as a region shows it to people."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime

from ces_common.messages.base import Message
from ces_common.states import JobState

HoldState = Literal["waiting", "held", "committed", "released"]
"""``waiting``: it has no place yet; ``held``: it has one, and starts nothing; ``released``: it was given up before it
was committed, and nothing of it ran."""


class HoldView(Message):
    """A job of one region that another one holds, as this region's database knows it. ``region``: the other one;
    ``job``, ``name`` and ``tenant`` as it has them here, ``job_state`` what it is here. ``since``: when it was held, or
    decided to run there; None where nobody noted it. ``ends``: when a hold that is not committed is released.
    ``part``: which of a job that is split; None for a whole one. ``home_job`` and ``attempt``: of which try of its home
    this is the job. ``remote_state``: what the other region said last; ``unknown_since``: since when it does not
    answer."""

    region: str
    job: str
    name: str
    tenant: str
    state: HoldState
    job_state: JobState
    attempt: int
    part: int | None = None
    since: AwareDatetime | None = None
    ends: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    home_job: str | None = None
    remote_state: str | None = None
    unknown_since: AwareDatetime | None = None


class HoldList(Message):
    """``here``: what this region holds of others' jobs; ``there``: what others hold of this one's. Those that are not
    over first, the newest first; ``more``: there are others, which are left out."""

    here: list[HoldView] = []
    there: list[HoldView] = []
    more: bool = False
