"""What a drain would hit, told before it is done."""

from __future__ import annotations

from ces_common.messages.base import Message
from ces_common.states import JobState


class DrainedJob(Message):
    """A job that would be placed elsewhere as a whole gang. ``workers``: its tasks on the node; ``malleable``: it goes
    on from its newest checkpoint, any other from its beginning. ``elsewhere``: whether there is a place for it on other
    nodes now, by itself and once it has given back what it holds; None where nobody says. ``reason``: why there is
    none."""

    id: str
    name: str
    tenant: str
    state: JobState
    priority: int
    workers: list[str]
    malleable: bool = False
    elsewhere: bool | None = None
    reason: str | None = None


class DrainForecast(Message):
    """``remark``: why it is not said of every job whether it has a place elsewhere."""

    node: str
    cordoned: bool
    jobs: list[DrainedJob] = []
    remark: str | None = None
