"""For which share of the time a node or link is there."""

from __future__ import annotations

from ces_common.messages.base import Message


class Availability(Message):
    """Learned from what was heard of it: with 95 % probability it is there at least a share ``least`` of the time;
    ``mean``: what is expected. ``n``: minutes for which it was looked at, of which older ones count less."""

    least: float
    mean: float
    n: int
