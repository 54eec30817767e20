"""How long requests of an application take, by the model of docs/latency.md: with a plan, and for whoever reads it."""

from __future__ import annotations

from ces_common.messages.base import Message
from ces_common.messages.bounds import Amount


class RequestStep(Message):
    """A part of a request's time: ``task on node``, ``node -> node``, or ``access``. ``ms``: None where it never
    ends."""

    what: str
    ms: Amount | None = None


class RequestTime(Message):
    """Of a class of requests. ``user``: whose they are; empty from a scheduler that does not say. ``time_ms``: None
    where one never ends; ``hard``: a plan that misses the deadline is no plan."""

    name: str
    user: str = ""
    time_ms: Amount | None = None
    deadline_ms: Amount | None = None
    hard: bool = False
    steps: list[RequestStep] = []
